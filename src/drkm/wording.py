"""Human-readable numbers, tables of text, and text that is safe to print in a terminal."""

from __future__ import annotations

import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Sequence

#: embeddings, overrides and isolates of Unicode's bidirectional algorithm, which reorder the text around them
_TURNS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural where it needs one."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def duration(seconds: float) -> str:
    """Return a readable duration: 0.03 s, 8.2 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 1:
        return f"{seconds:.1g} s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def in_bytes(number: float) -> str:
    """Return a number of bytes in the largest decimal unit in which it is above one."""
    return f"{scaled(number)}B"


def scaled(number: float) -> str:
    """Return a number with the largest decimal unit prefix that keeps it above one; the caller appends the unit."""
    for unit in ("", "k", "M", "G", "T", "P"):
        if number < 999.5 or unit == "P":
            return f"{number:.3g} {unit}"
        number /= 1000
    raise AssertionError


def dtype_name(dtype: object) -> str:
    """Return the name of a precision of torch: float32."""
    return str(dtype).removeprefix("torch.")


def unnamed(count: int) -> list[str]:
    """Return the names of columns that have none: x0, x1, …."""
    return [f"x{index}" for index in range(count)]


def from_mean(deviations: float) -> str:
    """Return a distance from the mean in standard deviations: mean, +1 s.d."""
    return "mean" if abs(deviations) < 1e-12 else f"{deviations:+.2g} s.d."


def as_label(number: float) -> str:
    """Return a number as the name of a class: whole numbers without a decimal point, and no two numbers alike."""
    # Beyond 2^53 a float is one of several integers, and may have hundreds of digits.
    return str(int(number)) if float(number).is_integer() and abs(number) < 2**53 else str(number)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table, its first column left-aligned and the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([first.ljust(widths[0]), *map(str.rjust, others, widths[1:])]).rstrip() for first, *others in rows
    ]


def markdown_table(rows: Sequence[Sequence[str]], *, numbers: bool = False) -> str:
    """Return a Markdown table whose first row is its header; with `numbers` all columns but the first hold numbers."""
    lines = ["| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in row) + " |" for row in rows]
    lines.insert(1, "|---|" + ("---:|" if numbers else "---|") * (len(rows[0]) - 1))
    return "\n".join(lines)


def for_terminal(text: str) -> str:
    """Wrap long lines at words, with an indent, if stdout is a terminal; otherwise return the text unchanged."""
    if sys.stdout is None or not sys.stdout.isatty():
        return text
    width = shutil.get_terminal_size().columns
    whole = textwrap.TextWrapper(
        width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False, replace_whitespace=False
    )
    return "\n".join(whole.fill(line) for line in text.splitlines())


def shown(text: str) -> str:
    """Return text with its control characters escaped, because a terminal would execute them.

    Newlines and tabs stay. Others become JSON escapes, so that valid JSON remains valid.
    """
    return "".join(f"\\u{ord(letter):04x}" if _is_obeyed(letter) else letter for letter in text)


def _is_obeyed(letter: str) -> bool:
    control = unicodedata.category(letter) in ("Cc", "Cs") and letter not in "\n\t"
    return control or unicodedata.bidirectional(letter) in _TURNS
