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


@app.command()
def reproduce(
    names: Annotated[list[str], typer.Argument(help="table1, figure1, figure2, figure3 or digits.")],
    scale: Annotated[str, typer.Option(help="quick (about a minute) or paper (the published sizes).")] = "quick",
    out: Annotated[Path, typer.Option(help="Folder for figures and tables.")] = Path("results"),
    seed: Annotated[int, typer.Option(help="Seed of the data.")] = 2,
    jobs: Annotated[int, typer.Option(help="Processes, -1 for all processors.")] = -1,
) -> None:
    """Make tables and figures of the paper's denoising experiments.

    Example: drkm reproduce table1 figure1 --scale quick
    """
    from drkm.experiments import by_name

    runs = [by_name(name) for name in names]
    for run in runs:
        for path in run(scale, out, seed=seed, n_jobs=jobs):
            typer.echo(path)
