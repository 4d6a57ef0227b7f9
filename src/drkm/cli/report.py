"""The report of an experiment's runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from drkm.cli._help import examples
from drkm.cli._outcome import say

EXAMPLES = examples(
    "drkm report",
    "drkm report --scale medium -o medium.html",
    "drkm report --scale medium -o claims.md     # the claims alone",
)


def report(
    store: Annotated[Path, typer.Option(metavar="FILE", help="File of the runs.")] = Path("results/runs.sqlite"),
    scale: Annotated[str, typer.Option("--scale", metavar="SCALE", help="quick, medium or paper.")] = "quick",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The page to write, or a .md file for the claims alone.",
            show_default="SCALE/report.html beside the runs",
        ),
    ] = None,
) -> None:
    """Write one HTML page of all that the runs of a store show.

    Claims with their verdicts, figures, tables, configuration, versions, hardware and run time. The page needs neither
    a network nor another file, reads on a phone and prints. Runs that are missing are said to be.
    """
    from drkm.experiments.report import write_report
    from drkm.files import called

    with called("out"):
        say(write_report(store, out or store.parent / scale / "report.html", scale=scale))
