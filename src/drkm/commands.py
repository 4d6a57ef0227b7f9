"""What the command line can do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def about() -> None:
    """Disentangled, denoised, reproducible features from few samples."""


@app.command()
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


@app.command()
def evaluate(
    codes: Annotated[Path, typer.Argument(help="Codes, one row a sample: npy, npz or csv.")],
    factors: Annotated[Path, typer.Argument(help="Factors as integer classes, one row a sample: npy, npz or csv.")],
    standardize: Annotated[bool, typer.Option(help="Scale codes to unit variance, as kernel codes need.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Score codes against factors: every disentanglement metric beside its chance level.

    Example: drkm evaluate codes.npy factors.npy --standardize
    """
    from drkm.metrics import evaluate_files

    typer.echo(evaluate_files(codes, factors, standardize=standardize, format="json" if json else "table"))


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


datasets_app = typer.Typer(no_args_is_help=True, help="List, download and verify the image datasets.")
app.add_typer(datasets_app, name="datasets")


@datasets_app.command("list")
def list_() -> None:
    """Say what each dataset is, its licence, and whether it needs files."""
    from drkm.datasets import data_dir, list_datasets

    for info in list_datasets():
        typer.echo(f"{info.name}: {info.about}; {info.licence}{'; drawn, needs no file' if info.drawn else ''}")
    typer.echo(f"data folder: {data_dir()} (environment variable DRKM_DATA)")


@datasets_app.command()
def download(name: Annotated[str, typer.Argument(help="A name that 'drkm datasets list' shows.")]) -> None:
    """Fetch the original files of a dataset and check them.

    Example: drkm datasets download cars3d
    """
    from drkm.datasets import download as fetch

    for path in fetch(name):
        typer.echo(path)


@datasets_app.command()
def verify(name: Annotated[str | None, typer.Argument(help="One dataset; all by default.")] = None) -> None:
    """Check the files in the data folder; exit code 2 if one of them is damaged."""
    from drkm.datasets import verify as check

    checks = check(name)
    for found in checks:
        typer.echo(f"{found.dataset}: {found.path.name}: {found.state}{f', {found.message}' if found.message else ''}")
    if any(found.state not in ("ok", "missing") for found in checks):
        raise typer.Exit(2)
