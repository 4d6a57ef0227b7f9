"""The command-line application, assembled from one module per group of commands."""

from __future__ import annotations

from typing import Annotated

import typer

from drkm.cli import clean, datasets, experiments, explore, fill, fit, info, plot, report, runs, scores, traverse, use
from drkm.cli._help import SectionedCommand, application, examples
from drkm.cli._outcome import say

app = application(
    "Kernel features that you can trust, from 50 samples to a million.\n\n"
    "Errors go to stderr. Exit codes: 0 done, 2 wrong input, 130 interrupted, 1 a bug or failed runs.",
    examples(
        "drkm demo                           # a tour in half a minute",
        "drkm fit X.npy -o X.safetensors     # or a csv, or a folder of images",
        "drkm encode X.safetensors new.npy -o codes.csv",
        "drkm denoise noisy.csv -o clean.csv --auto     # chooses a model",
        "drkm fit --help                     # options and more examples",
    ),
)


def _show_version(asked: bool) -> None:
    if asked:
        from drkm import __version__

        say(f"drkm {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; also after the name of a command.")
    ] = False,
) -> None:
    """Options of the whole command; its help is that of the application."""


app.command(cls=SectionedCommand, epilog=fit.EXAMPLES)(fit.fit)
app.command(cls=SectionedCommand, epilog=info.EXAMPLES)(info.info)
app.command(cls=SectionedCommand, epilog=use.ENCODE_EXAMPLES)(use.encode)
app.command(cls=SectionedCommand, epilog=use.DENOISE_EXAMPLES)(use.denoise)
app.command(cls=SectionedCommand, epilog=clean.SELECT_EXAMPLES)(clean.select)
app.command(cls=SectionedCommand, epilog=fill.EXAMPLES)(fill.fill)
app.command(cls=SectionedCommand, epilog=traverse.EXAMPLES)(traverse.traverse)
app.command(cls=SectionedCommand, epilog=plot.EXAMPLES)(plot.plot)
app.command(cls=SectionedCommand, epilog=explore.EXAMPLES)(explore.explore)
app.command(cls=SectionedCommand, epilog=scores.EXAMPLES)(scores.evaluate)
app.command(cls=SectionedCommand)(experiments.demo)
app.command(cls=experiments.ExperimentsCommand, epilog=experiments.EXAMPLES)(experiments.reproduce)
app.command(cls=SectionedCommand, epilog=report.EXAMPLES)(report.report)
app.command(cls=SectionedCommand, epilog=report.PACK_EXAMPLES)(report.pack)
app.command(cls=SectionedCommand, epilog=runs.STATUS_EXAMPLES)(runs.status)
app.command(cls=SectionedCommand, epilog=runs.MERGE_EXAMPLES)(runs.merge)
app.add_typer(datasets.app, name="datasets")
