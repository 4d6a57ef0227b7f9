"""Tables as CSV, Markdown and LaTeX, figures as PNG, SVG and PDF, each file written whole or not at all."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from drkm.experiments.cells import readable
from drkm.experiments.latex import latex
from drkm.files import write_whole
from drkm.wording import markdown_table


def write_bytes(path: Path, write: Callable[[BinaryIO], object]) -> Path:
    """Write a file through a temporary one in the same folder, so that no reader sees a partial file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_whole(path, write)


def write_text(path: Path, text: str) -> Path:
    """Write a text file."""
    return write_bytes(path, lambda file: file.write(text.encode()))


def save_figure(figure: Any, out: Path, name: str) -> list[Path]:
    """Write a figure as PNG, SVG and PDF, and close it."""
    from drkm.plotting import pyplot, save_undated, style

    with style():
        paths = [
            write_bytes(out / f"{name}.{kind}", partial(save_undated, figure, kind)) for kind in ("png", "svg", "pdf")
        ]
    pyplot().close(figure)
    return paths


def save_table(rows: Sequence[Mapping[str, Any]], out: Path, name: str, title: str) -> list[Path]:
    """Write rows with the same keys as CSV with all digits, and as Markdown and LaTeX tables with four."""
    return [
        write_text(out / f"{name}.csv", comma_separated(rows)),
        write_text(out / f"{name}.md", f"{title}\n\n{markdown(rows)}\n"),
        write_text(out / f"{name}.tex", latex(rows, title, f"tab:{out.name}-{name}")),
    ]


def comma_separated(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a table as CSV."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a Markdown table."""
    columns = list(rows[0])
    return markdown_table([columns, *([readable(row[column]) for column in columns] for row in rows)])
