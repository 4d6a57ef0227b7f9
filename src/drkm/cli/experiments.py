"""The commands that run experiments: demo and reproduce."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drkm.cli._help import SectionedCommand, examples
from drkm.cli._options import SeedsOption, SetOption, seeds_of, variant_of, words_of
from drkm.cli._outcome import Interrupted, say, say_table, warn

if TYPE_CHECKING:
    from drkm.experiments.report.chapters import Report

EXAMPLES = examples(
    "drkm reproduce table1 --scale quick",
    "drkm reproduce all --scale medium --skip beta-vae     # here",
    "drkm reproduce all --scale medium --only beta-vae     # where the GPU is",
    "drkm reproduce all --scale medium --seeds 3",
    "drkm reproduce layers --set gamma=2     # in results/quick+gamma=2",
    "drkm reproduce all --scale paper --dask tcp://10.0.0.1:8786",
)
#: data of the demo → the module that runs it
DEMOS = {"sprites": "drkm.demos.sprites", "digits": "drkm.demos.digits"}


class ExperimentsCommand(SectionedCommand):
    """A command whose help lists the experiments, which are looked up only for that."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, then the experiments."""
        from drkm.experiments.registry import EXPERIMENTS

        super().format_options(ctx, formatter)
        with formatter.section("Experiments"):
            formatter.write_dl([(name, found.title) for name, found in EXPERIMENTS.items()])


def demo(
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="sprites (drawn dSprites, with scores) or digits (with denoising).")
    ] = "sprites",
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder for the figure and the model.")
    ] = Path("results/demo"),
    n: Annotated[int, typer.Option("--n", metavar="N", min=50, max=1500, help="Number of training images.")] = 400,
) -> None:
    """Train on built-in data, and draw the results.

    Example: drkm demo digits --out results/demo
    """
    from drkm.files import called
    from drkm.plotting import pyplot

    if data not in DEMOS:
        raise ValueError(f"data: unknown name {data!r}, allowed are {', '.join(DEMOS)}")
    if out.exists() and not out.is_dir():
        raise ValueError(f"out: {out} is a file, not a folder")
    # Fail now, not after the work.
    pyplot()
    with called("out"):
        importlib.import_module(DEMOS[data]).run(out, n)


def reproduce(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Experiments, by the names below, or all.")],
    scale: Annotated[
        str,
        typer.Option(
            "--scale", metavar="SCALE", help="quick (minutes), medium (hours) or paper (the published sizes)."
        ),
    ] = "quick",
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder of the results.")] = Path(
        "results"
    ),
    store: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File of the runs.", show_default="runs.sqlite in the folder")
    ] = None,
    jobs: Annotated[
        int, typer.Option(metavar="N", help="Processes with one thread each, -1 for one per processor.")
    ] = -1,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Compute on a Dask cluster: tcp://host:port, or local.")
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Compute failed runs again.")] = False,
    only: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Compute only runs of these models or tasks: beta-vae.")
    ] = None,
    skip: Annotated[str | None, typer.Option(metavar="NAMES", help="Leave out runs of these models or tasks.")] = None,
    seeds: SeedsOption = None,
    set_: SetOption = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Do not write the page report.html.")] = False,
) -> None:
    """Compute tables and figures of the paper.

    They go to a folder for their scale, such as results/quick, with the page report.html, which shows all experiments
    of that folder and says which claims held. Runs in the store are not computed again, so that an interrupted command
    can be resumed. With --only and --skip the runs can be split over several machines, and combined with drkm merge.
    With --set the runs have another value of a parameter, and go to a folder of their own: results/quick+gamma=2.
    """
    from drkm.experiments.report.writing import gather, write_gathered
    from drkm.experiments.reproduce import reproduce as make
    from drkm.experiments.reproduce import store_path
    from drkm.experiments.request import Request
    from drkm.files import called

    request = Request(names, scale, seeds_of(seeds), variant_of(set_))
    runs, written = store_path(out, store), out / request.folder
    try:
        with called("out"), called("out" if store is None else "store", "store"):
            paths = make(
                request,
                out=out,
                store=runs,
                jobs=jobs,
                dask=dask,
                retry_failed=retry_failed,
                only=words_of(only),
                skip=words_of(skip),
            )
            report = gather(runs, request)
            page = None if no_report else write_gathered(gather(runs, request.beside(written)), written / "report.html")
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; finished runs are in {runs}, the same command computes the rest") from None
    for path in paths:
        say(path)
    _tell_verdicts(report)
    if page is not None:
        say(page)
    _tell_rest(request.runs, written, runs, paths)


def _tell_verdicts(report: Report) -> None:
    from drkm.experiments.report.listing import claim_lines, heading, verdict_rows

    for line in (*heading(report), *claim_lines(report)):
        say(line)
    if len(rows := verdict_rows(report)) > 1:
        say_table(rows)


def _tell_rest(asked: dict[str, Any], written: Path, runs: Path, paths: list[Path]) -> None:
    """Warn of experiments that wait for runs, and of failed runs, which make the command fail."""
    from drkm.experiments import registry
    from drkm.runs.store import Store

    waiting = [name for name in asked if not any(path.is_relative_to(written / name) for path in paths)]
    if waiting:
        warn(f"not written yet, because runs that were left out are missing: {', '.join(waiting)}")
    with Store(runs, registry.TASKS, readonly=True) as opened:
        failed = len(opened.failures(run for group in asked.values() for run in group))
    if failed:
        warn(f"{failed} runs failed: 'drkm status --store {runs}' shows why, --retry-failed computes them again")
        raise typer.Exit(1)
