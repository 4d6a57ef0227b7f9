"""From names of experiments to their tables and figures: sweep what is missing, then write what there is to show."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from drkm.datasets import DatasetError
from drkm.experiments import registry
from drkm.experiments.experiment import Experiment
from drkm.experiments.output import save_figure, save_table
from drkm.experiments.section import Section
from drkm.experiments.seeds import Seeds
from drkm.experiments.settings import written
from drkm.experiments.variant import Variant, changes_of
from drkm.runs.configuration import Configuration, Results, check_scale
from drkm.runs.lease import LEASE_SECONDS
from drkm.runs.runner import check_jobs, sweep
from drkm.runs.store import Store


def reproduce(
    names: Sequence[str],
    *,
    scale: str = "quick",
    out: str | os.PathLike[str] = "results",
    store: str | os.PathLike[str] | None = None,
    jobs: int = -1,
    dask: str | None = None,
    retry_failed: bool = False,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    seeds: Seeds | None = None,
    variant: Variant | None = None,
    progress: bool = True,
    lease_seconds: float = LEASE_SECONDS,
) -> list[Path]:
    """Run experiments and write their tables and figures.

    All runs are swept together: experiments that share one share its result. An experiment is written when all of
    its runs are done or failed, so that with `only` or `skip` the runs can be made in parts and on several machines.

    Parameters
    ----------
    names : sequence of str
        Experiments, or "all".
    scale : {"quick", "medium", "paper"}
    out : path
        Folder of the results: the runs of all scales, and a folder for each scale, and for each variant at it, with
        one for each experiment.
    store : path, optional
        File of the runs; `runs.sqlite` in `out` by default.
    jobs, dask, retry_failed, progress, lease_seconds
        As in `drkm.runs.runner.sweep`.
    only, skip : collection of str
        Names of tasks or of families of models (the parameter `family` of a run, such as "beta-vae") whose runs alone
        are computed, or are not computed.
    seeds : Seeds, optional
        How many seeds the runs of the disentanglement experiments have; by default those of the scale.
    variant : Variant, optional
        Parameters that have other values than the paper's; experiments that have none of them are left out.

    Returns
    -------
    list of Path
        Files written.
    """
    jobs = check_jobs(jobs)
    for option, chosen in (("only", only), ("skip", skip)):
        check_choice(option, chosen)
    experiments = experiments_of(names, variant)
    runs = configurations_of(names, scale, seeds, variant)
    path = store_path(out, store)
    asked = computable([run for group in runs.values() for run in group if is_chosen(run, only, skip)], path)
    if dask is not None and not path.exists():
        from drkm.runs.cluster import check_address

        # Before a store is made that nothing would come into.
        check_address(dask)
    paths: list[Path] = []
    with Store(path, registry.TASKS) as opened:
        sweep(
            asked,
            opened,
            jobs=jobs,
            dask=dask,
            retry_failed=retry_failed,
            progress=progress,
            lease_seconds=lease_seconds,
        )
        for name, group in runs.items():
            if not opened.unfinished(group):
                shown = experiments[name].section(opened.results(group), scale, seeds)
                paths += write_section(shown, Path(out) / folder_of(experiments, scale) / name)
    return paths


def expand(names: Iterable[str]) -> list[str]:
    """Return the experiments that names stand for, each once; "all" stands for every one."""
    found: dict[str, None] = {}
    for name in names:
        found.update(dict.fromkeys(registry.EXPERIMENTS if name == "all" else [name]))
    if not found:
        raise ValueError(f"names: expected 'all' or names of experiments ({', '.join(registry.EXPERIMENTS)}), got none")
    for name in found:
        if name not in registry.EXPERIMENTS:
            allowed = ", ".join(registry.EXPERIMENTS)
            raise ValueError(f"experiment: unknown name {name!r}, allowed are {allowed} and all")
    return list(found)


def experiments_of(names: Iterable[str], variant: Variant | None = None) -> dict[str, Experiment]:
    """Return experiments by their names, or the variants of those that have a parameter of it."""
    found = {name: registry.EXPERIMENTS[name] for name in expand(names)}
    return found if variant is None else variant.of(found)


def folder_of(experiments: Mapping[str, Experiment], scale: str) -> str:
    """Return the name of the folder in which experiments at a scale are written, such as "quick+gamma=2"."""
    changes = changes_of(experiments.values())
    return "+".join([scale, *(written({name: value}) for name, value in sorted(changes.items()))])


def configurations_of(
    names: Iterable[str], scale: str, seeds: Seeds | None = None, variant: Variant | None = None
) -> dict[str, list[Configuration]]:
    """Return the runs of each experiment."""
    check_scale(scale)
    for name in seeds.of if seeds else ():
        if name not in registry.families():
            raise ValueError(f"seeds: unknown model {name!r}, allowed are {', '.join(registry.families())}")
    return {name: found.configurations(scale, seeds) for name, found in experiments_of(names, variant).items()}


def store_path(out: str | os.PathLike[str], store: str | os.PathLike[str] | None = None) -> Path:
    """Return where the runs of an output folder are kept."""
    return Path(out) / "runs.sqlite" if store is None else Path(store)


def check_choice(option: str, names: Collection[str]) -> None:
    """Refuse names that no run of any experiment has; runs of another experiment than those asked for may have them."""
    for name in names:
        if name not in registry.choices():
            raise ValueError(f"{option}: unknown name {name!r}, allowed are {', '.join(registry.choices())}")


def is_chosen(run: Configuration, only: Collection[str], skip: Collection[str]) -> bool:
    """Whether a run is to be computed, by the name of its task or of its family of models."""
    names = names_of(run)
    return (not only or bool(names & set(only))) and not names & set(skip)


def names_of(run: Configuration) -> set[str]:
    """Return the names by which a run can be chosen."""
    return {run.task, *([run.parameters["family"]] if "family" in run.parameters else [])}


def computable(runs: Iterable[Configuration], store: Path) -> list[Configuration]:
    """Return the runs whose data are on this machine, before anything is written.

    Results of others may be in the store, from the machine that has their data; if not, one sentence says how to get
    them.
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
        if table.rows:
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
