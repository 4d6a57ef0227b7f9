"""Writes the report of a store of runs to a file."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from drkm._version import __version__
from drkm.experiments import registry
from drkm.experiments.experiment import Experiment
from drkm.experiments.output import write_text
from drkm.experiments.report.chapters import Chapter, FailedRun, Report
from drkm.experiments.report.listing import listing
from drkm.experiments.report.page import page
from drkm.experiments.request import Request
from drkm.experiments.settings import written
from drkm.runs.configuration import Configuration
from drkm.runs.store import Store

#: formats of a report by file name extension
FORMATS = {".html": page, ".md": listing}


def write_report(store: str | os.PathLike[str], path: str | os.PathLike[str], request: Request | None = None) -> Path:
    """Write the page, or the summary and the claims as Markdown where the path ends in .md, whole or not at all.

    The store of the runs is only read. By default all experiments are shown at the scale "quick".
    """
    check_format(path)
    return write_gathered(gather(Path(store), request or Request()), path)


def check_format(path: str | os.PathLike[str]) -> None:
    """Refuse a file name with an unknown extension before any work is done."""
    if Path(path).suffix.lower() not in FORMATS:
        raise ValueError(f"out: a report is a file that ends in {' or '.join(FORMATS)}, got {Path(path).name}")


def write_gathered(report: Report, path: str | os.PathLike[str]) -> Path:
    """Write a report in the format of its file name extension."""
    path = Path(path)
    return write_text(path, FORMATS[path.suffix.lower()](report))


def gather(store: Path, request: Request) -> Report:
    """Return the report on the runs of a store."""
    with Store(store, registry.TASKS, readonly=True) as opened:
        chapters = [_chapter(opened, found, request) for found in request.experiments.values()]
        asked = {run for runs in request.runs.values() for run in runs}
        runs = len(opened.results(asked))
        environments = opened.environments(asked)
    made = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    told = written(request.changes)
    return Report(request.scale, chapters, runs, environments, made, __version__, request.options, told)


def _chapter(store: Store, experiment: Experiment, request: Request) -> Chapter:
    # An experiment may list the same run twice.
    runs = list(dict.fromkeys(request.runs[experiment.name]))
    results = store.results(runs)
    return Chapter(
        experiment.section(results, request.scale, request.seeds),
        expected=len(runs),
        finished=len(results),
        failed=[FailedRun(described(one.configuration), one.reason) for one in store.failures(runs)],
        seconds=sum(results.seconds(run) for run in runs if run in results),
        seeds=sorted({run.seed for run in runs}),
        command=f"drkm reproduce {experiment.name} {request.options}",
    )


def described(run: Configuration) -> str:
    """Return a run in a few words: its task, its short parameters and its seed."""
    short = {
        name: value for name, value in run.parameters.items() if isinstance(value, str | int | float) or value is None
    }
    return ", ".join([run.task, *(f"{name} {value}" for name, value in short.items()), f"seed {run.seed}"])
