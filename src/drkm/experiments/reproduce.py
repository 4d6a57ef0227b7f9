"""Reproduces experiments: computes the missing runs, then writes tables and figures."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from drkm.datasets import DatasetError
from drkm.experiments import registry
from drkm.experiments.output import save_figure, save_table
from drkm.experiments.request import Request
from drkm.experiments.section import Section
from drkm.runs.configuration import Configuration, Results
from drkm.runs.runner import check_jobs, sweep
from drkm.runs.store import Store


def reproduce(
    request: Request,
    *,
    out: str | os.PathLike[str] = "results",
    store: str | os.PathLike[str] | None = None,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    jobs: int = -1,
    dask: str | None = None,
    **how: Any,
) -> list[Path]:
    """Run experiments and write their tables and figures.

    All runs are swept together, and experiments share the results of common runs. An experiment is written when all
    of its runs are done or failed, so that with `only` or `skip` runs can be computed in parts on several machines.

    Parameters
    ----------
    request : Request
    out : path
        Folder of the results: the runs of all scales, and one folder per scale, and per variant at a scale, with one
        folder per experiment.
    store : path, optional
        File of the runs; `runs.sqlite` in `out` by default.
    only, skip : collection of str
        Names of tasks or of families of models (the parameter `family` of a run, such as "beta-vae"): compute only
        their runs, or all but these.
    jobs, dask, how
        As in `drkm.runs.runner.sweep`.

    Returns
    -------
    list of Path
        Files written.
    """
    jobs = check_jobs(jobs)
    for option, chosen in (("only", only), ("skip", skip)):
        check_choice(option, chosen)
    path = store_path(out, store)
    asked = computable([run for group in request.runs.values() for run in group if is_chosen(run, only, skip)], path)
    if dask is not None and not path.exists():
        from drkm.runs.cluster import check_address

        # Before an empty store is created.
        check_address(dask)
    paths: list[Path] = []
    with Store(path, registry.TASKS) as opened:
        sweep(asked, opened, jobs=jobs, dask=dask, **how)
        for name, group in request.runs.items():
            if not opened.unfinished(group):
                shown = request.experiments[name].section(opened.results(group), request.scale, request.seeds)
                paths += write_section(shown, Path(out) / request.folder / name)
    return paths


def store_path(out: str | os.PathLike[str], store: str | os.PathLike[str] | None = None) -> Path:
    """Return where the runs of an output folder are kept."""
    return Path(out) / "runs.sqlite" if store is None else Path(store)


def check_choice(option: str, names: Collection[str]) -> None:
    """Refuse names that no run of any experiment has, requested or not."""
    for name in names:
        if name not in registry.choices():
            raise ValueError(f"{option}: unknown name {name!r}, allowed are {', '.join(registry.choices())}")


def is_chosen(run: Configuration, only: Collection[str], skip: Collection[str]) -> bool:
    """Whether a run is to be computed, by the name of its task or family of models."""
    names = names_of(run)
    return (not only or bool(names & set(only))) and not names & set(skip)


def names_of(run: Configuration) -> set[str]:
    """Return the names by which a run can be chosen."""
    return {run.task, *([run.parameters["family"]] if "family" in run.parameters else [])}


def computable(runs: Iterable[Configuration], store: Path) -> list[Configuration]:
    """Return the runs whose data are on this machine, before anything is written.

    Other runs may already be in the store, computed where their data are; if not, the error says how to get the
    data.
    """
    here, absent = [], {}
    for run in runs:
        try:
            registry.TASKS.identify(run)
        except DatasetError as error:
            absent[run] = error
        else:
            here.append(run)
    if absent:
        known = Results()
        if store.is_file():
            with Store(store, registry.TASKS, readonly=True) as opened:
                known = opened.results(absent)
        for run, sentence in absent.items():
            if run not in known:
                raise sentence
    return here


def write_section(section: Section, folder: Path) -> list[Path]:
    """Write the claims and tables (CSV, Markdown and LaTeX) and the figures (PNG, SVG and PDF) of an experiment."""
    paths: list[Path] = []
    if section.claims:
        paths += save_table(claim_rows(section), folder, "claims", section.title)
    for table in section.tables:
        paths += save_table(table.rows, folder, table.name, table.caption)
    for figure in section.figures:
        paths += save_figure(figure.draw(), folder, figure.name)
    return paths


def claim_rows(section: Section) -> list[dict[str, str]]:
    """Return the claims of an experiment as a table."""
    return [
        {
            "claim": claim.text,
            "published": claim.published,
            "ours": claim.measured,
            "verdict": claim.verdict.value,
            "why": claim.why,
        }
        for claim in section.claims
    ]
