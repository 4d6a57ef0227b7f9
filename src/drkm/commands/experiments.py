"""Running experiments: demo, reproduce, report."""

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
    names: Annotated[list[str], typer.Argument(help="Experiments by name, or all.")],
    scale: Annotated[str, typer.Option(help="quick, medium or paper (the published sizes).")] = "quick",
    out: Annotated[Path, typer.Option(help="Folder for figures, tables and report.")] = Path("results"),
    store: Annotated[Path | None, typer.Option(help="File of the runs; runs.sqlite in the folder by default.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes, -1 for all processors.")] = -1,
    dask: Annotated[str | None, typer.Option(help="Dask scheduler (tcp://…) that computes instead, or local.")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Compute again what failed before.")] = False,
    no_report: Annotated[bool, typer.Option("--no-report", help="Do not write report.html.")] = False,
) -> None:
    """Compute the tables and figures of the paper; what was computed before is not computed again.

    Example: drkm reproduce table1 figure1 --scale quick
    """
    from drkm.experiments.reproduce import reproduce as run
    from drkm.experiments.reproduce import store_path
    from drkm.report import write_report

    for path in run(names, scale=scale, out=out, store=store, jobs=jobs, dask=dask, retry_failed=retry_failed):
        typer.echo(path)
    if not no_report:
        typer.echo(write_report(store_path(out, store), out / "report.html", scale=scale))
