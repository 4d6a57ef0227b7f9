"""From a store of runs to the file of the report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from drkm._version import __version__
from drkm.experiments import registry
from drkm.experiments.experiment import Experiment
from drkm.experiments.output import write_text
from drkm.experiments.report.chapters import Chapter, FailedRun, Report
from drkm.experiments.report.listing import listing
from drkm.experiments.report.page import page
from drkm.experiments.reproduce import experiments_of
from drkm.experiments.seeds import Seeds
from drkm.experiments.settings import written
from drkm.experiments.variant import Variant, changes_of
from drkm.runs.configuration import Configuration, check_scale
from drkm.runs.store import Store

#: what a report is written as, by the end of its name
FORMATS = {".html": page, ".md": listing}


def write_report(
    store: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    scale: str = "quick",
    names: Sequence[str] | None = None,
    seeds: Seeds | None = None,
    variant: Variant | None = None,
) -> Path:
    """Write the page, or the summary and the claims as Markdown, whole or not at all.

    Parameters
    ----------
    store : path
        File of the runs; it is only read.
    path : path
        The page, or a file whose name ends in .md for the summary and the claims.
    scale : {"quick", "medium", "paper"}
    names : sequence of str, optional
        Experiments to show, all by default.
    seeds : Seeds, optional
        Of the runs that are shown; by default those of the scale.
    variant : Variant, optional
        Of the experiments that are shown; by default they are as published.

    Returns
    -------
    Path
        The file.
    """
    check_format(path)
    return write_gathered(gather(Path(store), scale, names, seeds, variant), path)


def check_format(path: str | os.PathLike[str]) -> None:
    """Refuse a file that a report cannot be written as, before the work."""
    if Path(path).suffix.lower() not in FORMATS:
        raise ValueError(f"out: a report is a file that ends in {' or '.join(FORMATS)}, got {Path(path).name}")


def write_gathered(report: Report, path: str | os.PathLike[str]) -> Path:
    """Write a report as what the end of its name says."""
    path = Path(path)
    return write_text(path, FORMATS[path.suffix.lower()](report))


def gather(
    store: Path,
    scale: str,
    names: Sequence[str] | None = None,
    seeds: Seeds | None = None,
    variant: Variant | None = None,
) -> Report:
    """Return what the runs of a store at one scale show."""
    check_scale(scale)
    experiments = experiments_of(["all"] if names is None else names, variant)
    options = " ".join(
        [f"--scale {scale}", *([f"--seeds {seeds}"] if seeds else []), *([str(variant)] if variant else [])]
    )
    with Store(store, registry.TASKS, readonly=True) as opened:
        chapters = [_chapter(opened, found, scale, seeds, options) for found in experiments.values()]
        asked = {run for found in experiments.values() for run in found.configurations(scale, seeds)}
        runs = len(opened.results(asked))
        environments = opened.environments(asked)
    made = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    told = written(changes_of(experiments.values()))
    return Report(scale, chapters, runs, environments, made, __version__, options, told)


def _chapter(store: Store, experiment: Experiment, scale: str, seeds: Seeds | None, options: str) -> Chapter:
    # Experiments may ask for the same run twice; it is one run.
    runs = list(dict.fromkeys(experiment.configurations(scale, seeds)))
    results = store.results(runs)
    return Chapter(
        experiment.section(results, scale, seeds),
        expected=len(runs),
        finished=len(results),
        failed=[FailedRun(described(one.configuration), one.reason) for one in store.failures(runs)],
        seconds=sum(results.seconds(run) for run in runs if run in results),
        seeds=sorted({run.seed for run in runs}),
        command=f"drkm reproduce {experiment.name} {options}",
    )


def described(run: Configuration) -> str:
    """Return a run in a few words: its task, its short parameters and its seed."""
    short = {
        name: value for name, value in run.parameters.items() if isinstance(value, str | int | float) or value is None
    }
    return ", ".join([run.task, *(f"{name} {value}" for name, value in short.items()), f"seed {run.seed}"])
