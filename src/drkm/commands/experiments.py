"""Running experiments: demo and reproduce."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer


def demo(
    data: Annotated[
        str, typer.Argument(help="sprites (drawn dSprites, with scores) or digits (with denoising).")
    ] = "sprites",
    out: Annotated[Path, typer.Option(help="Folder for the figure and the model.")] = Path("results/demo"),
    n: Annotated[int, typer.Option(min=50, max=1500, help="Number of training images.")] = 400,
) -> None:
    """Train on embedded data, print what was fitted, and draw it.

    Example: drkm demo digits --out results/demo
    """
    from drkm.experiments import digits_demo, sprites_demo

    demos: dict[str, Callable[[Path, int], object]] = {"sprites": sprites_demo.run, "digits": digits_demo.run}
    if data not in demos:
        raise ValueError(f"data: unknown name {data!r}, allowed are {', '.join(demos)}")
    demos[data](out, n)


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
