"""What the command line can do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def about() -> None:
    """Disentangled, denoised, reproducible features from few samples."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figure and the model.")] = Path("results/demo"),
    n: Annotated[int, typer.Option(min=50, max=1500, help="Number of training digits.")] = 400,
) -> None:
    """Train on handwritten digits, print what was fitted, and draw it.

    Example: drkm demo --out results/demo
    """
    from drkm.demo import run

    run(out, n)
