"""Disentanglement of few images: our model, kernel PCA, the β-VAE and the paper's recipe, scored beside chance.

`python -m drkm.experiments.disentanglement cars3d --draws 5 --parts defaults,ours,kpca,paper,beta-vae` runs the study
of docs/cars3d.md; `python -m drkm.experiments.disentanglement select` the choice of bandwidths and axes on dSprites and
SmallNORB that precedes it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from drkm.experiments.disentanglement._rule import DEFAULTS, LAYERS, SIZES, Rule
from drkm.experiments.disentanglement._rule import run as run_selection
from drkm.experiments.disentanglement._verdicts import mean_and_spread
from drkm.experiments.output import write_csv, write_text
from drkm.runs.configuration import Configuration
from drkm.runs.runner import sweep
from drkm.runs.store import Store

#: what the study calls a dataset → its name among the data of all experiments
DATASETS = {"dsprites": "sprites", "smallnorb": "smallnorb", "cars3d": "cars3d"}
#: what "ours" means: fixed on dSprites and SmallNORB (docs/cars3d.md), never on Cars3D; "defaults" are the library's
CHOSEN = Rule(width=0.5, deep_eta=10.0)
_PAPER = {"family": "paper", "layers": list(LAYERS), "gamma": 1.0}
_FIXED = {"learn_bandwidth": False}
#: kind of model → parameters of its runs
KINDS: dict[str, dict[str, Any]] = {
    "ours": CHOSEN.parameters(LAYERS),
    "defaults": DEFAULTS.parameters(LAYERS),
    "kpca-median": DEFAULTS.parameters(LAYERS[:1]),
    "kpca": CHOSEN.parameters(LAYERS[:1]),
    "kpca-centred": {**CHOSEN.parameters(LAYERS[:1]), "center": True},
    "beta-vae": {"family": "beta-vae", "beta": 4.0},
    "paper-random": _PAPER,
    "paper-kpca": {**_PAPER, "init": "kpca"},
    "paper-random-fixed": {**_PAPER, **_FIXED},
    "paper-kpca-fixed": {**_PAPER, "init": "kpca", **_FIXED},
    "random": {"family": "random"},
}
#: what a part of the study trains
PARTS: dict[str, tuple[str, ...]] = {
    "ours": ("ours",),
    "defaults": ("defaults",),
    "kpca": ("kpca-median", "kpca"),
    "kpca-others": ("kpca-centred",),
    "beta-vae": ("beta-vae",),
    "paper": ("paper-random", "paper-kpca"),
    "paper-fixed": ("paper-random-fixed", "paper-kpca-fixed"),
    "random": ("random",),
}
SCORES = ("irs", "irs_chance", "irs_above", "mig", "mig_chance", "sap", "dci", "dci_completeness", "dci_accuracy")
FIELDS = ("dataset", "model", "draw", "seed", *SCORES, "train_s", "encode_s", "note")
_DEFAULT_PARTS = ("defaults", "ours", "kpca", "paper", "beta-vae", "random")


def run(
    scale: str = "paper",
    out: str | PathLike[str] = "results/disentanglement",
    *,
    dataset: str = "cars3d",
    parts: Sequence[str] = _DEFAULT_PARTS,
    draws: int = 5,
    start_seeds: int = 1,
    n_jobs: int = 1,
) -> list[Path]:
    """Run the study on one dataset and write every run as CSV, and means and spreads as Markdown.

    Runs that are in the folder's `runs.sqlite` are not computed again.

    Parameters
    ----------
    scale : {"paper", "quick"}
        800 training and 4000 evaluation images, or 200 and 1000.
    out : path
        Folder of the results.
    dataset : {"cars3d", "smallnorb", "dsprites"}
    parts : sequence of str
        Some of `PARTS`, or single kinds of models.
    draws : int
        Number of training draws.
    start_seeds : int
        How often our own model is started, with another seed each time, on every draw.
    n_jobs : int
        Processes.

    Returns
    -------
    list of Path
        The files written.
    """
    kinds = kinds_of(parts)
    runs = {kind: configurations(kind, dataset, scale, draws, start_seeds) for kind in kinds}
    folder = Path(out)
    with Store(folder / "runs.sqlite") as store:
        sweep([one for group in runs.values() for one in group], store, jobs=n_jobs)
        rows = [
            _row(kind, dataset, one, found[one])
            for kind, group in runs.items()
            for found in [store.results(group)]
            for one in group
            if one in found
        ]
    return [
        write_csv(rows, folder / f"{dataset}.csv", FIELDS),
        write_text(folder / f"{dataset}.md", summary(rows, kinds)),
    ]


def configurations(kind: str, dataset: str, scale: str, draws: int, start_seeds: int = 1) -> list[Configuration]:
    """Return the runs of one kind of model; a seed beyond 1000 is another start on the same draw."""
    if scale not in SIZES:
        raise ValueError(f"scale: unknown name {scale!r}, allowed are {', '.join(SIZES)}")
    if dataset not in DATASETS:
        raise ValueError(f"dataset: unknown name {dataset!r}, allowed are {', '.join(DATASETS)}")
    n, evaluation = SIZES[scale]
    shared = {"dataset": DATASETS[dataset], "n": n, "evaluation": evaluation, "dci": True, **KINDS[kind]}
    return [
        Configuration("disentangle", {**shared, **({"draw": number} if repeat else {})}, number + 1000 * repeat)
        for number in range(draws)
        for repeat in range(start_seeds if kind in ("ours", "defaults") else 1)
    ]


def _row(kind: str, dataset: str, run: Configuration, found: Mapping[str, Any]) -> dict[str, Any]:
    named = {"dataset": dataset, "model": kind, "draw": run.parameters.get("draw", run.seed), "seed": run.seed}
    row = {**named, **found, "irs_above": found["irs"] - found["irs_chance"], "note": _note(found)}
    return {field: row[field] for field in FIELDS}


def _note(found: Mapping[str, Any]) -> str:
    """Return what is worth knowing of a fit, in words."""
    parts = []
    if "bandwidths" in found:
        parts.append("σ² " + ", ".join(f"{width:.4g}" for width in found["bandwidths"]))
        parts.append(f"J {found['objective']:.4f}")
        parts += [f"{name} {found[name]:.0e}" for name in ("feasibility", "stationarity")]
    if "iterations" in found:
        parts.append(f"{found['iterations']} iterations")
    if "latents_used" in found:
        parts.append(f"best {found['best_step']}, {found['latents_used']} latents in use")
    return "; ".join([*parts, f"on {found['device']}"])


def kinds_of(parts: Iterable[str]) -> list[str]:
    """Return the kinds of models that parts name."""
    out: list[str] = []
    for part in parts:
        if part not in PARTS and part not in KINDS:
            raise ValueError(f"parts: unknown name {part!r}, allowed are {', '.join({**PARTS, **KINDS})}")
        out += [kind for kind in PARTS.get(part, (part,)) if kind not in out]
    return out


def summary(rows: Sequence[Mapping[str, Any]], kinds: Sequence[str]) -> str:
    """Return means and standard deviations over draws, and on how many draws our model is ahead, as Markdown."""
    columns = (*SCORES, "train_s")
    lines = ["| model | draws | " + " | ".join(columns) + " |", "|---|---|" + "---|" * len(columns)]
    for kind in kinds:
        runs = [row for row in rows if row["model"] == kind]
        if runs:
            cells = [mean_and_spread([float(row[column]) for row in runs]) for column in columns]
            lines.append(f"| {kind} | {len(runs)} | " + " | ".join(cells) + " |")
    lines += ["", *comparisons(rows, kinds), *start_spread(rows)]
    return "\n".join(lines) + "\n"


def comparisons(rows: Sequence[Mapping[str, Any]], kinds: Sequence[str]) -> list[str]:
    """Return one sentence a pair of models: draws on which ours is ahead in IRS above chance, in MIG, in both."""
    by_draw = {(row["model"], row["draw"]): row for row in rows if int(row["seed"]) < 1000}
    lines = []
    for ours in ("ours", "defaults"):
        for rival in (kind for kind in kinds if kind not in ("ours", "defaults")):
            shared = [d for model, d in by_draw if model == ours and (rival, d) in by_draw]
            ahead = {
                score: [float(by_draw[ours, d][score]) > float(by_draw[rival, d][score]) for d in shared]
                for score in ("irs_above", "mig")
            }
            if shared:
                both = sum(a and b for a, b in zip(*ahead.values(), strict=True))
                lines.append(
                    f"- {ours} against {rival}: ahead in IRS above chance on {sum(ahead['irs_above'])}, in MIG on "
                    f"{sum(ahead['mig'])}, in both on {both} of {len(shared)} draws"
                )
    return lines


def start_spread(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the largest standard deviation of any score over start seeds, where a model was started repeatedly."""
    lines = []
    for kind in ("ours", "defaults"):
        runs = [row for row in rows if row["model"] == kind]
        groups = [[row for row in runs if row["draw"] == d] for d in {row["draw"] for row in runs}]
        spreads = [np.std([float(row[s]) for row in group]) for group in groups if len(group) > 1 for s in SCORES]
        if spreads:
            lines.append(f"- {kind}: largest standard deviation of any score over start seeds {max(spreads):.3g}")
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, run the study and say what was written."""
    parser = argparse.ArgumentParser(prog="python -m drkm.experiments.disentanglement", description=__doc__)
    parser.add_argument("dataset", choices=(*DATASETS, "select"), help="dataset, or the choice of bandwidths and axes")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--parts", default=",".join(_DEFAULT_PARTS), help=", ".join({**PARTS, **KINDS}))
    parser.add_argument("--scale", choices=SIZES, default="paper")
    parser.add_argument("--start-seeds", type=int, default=1, help="starts of our own model on every draw")
    parser.add_argument("--out", default="results/disentanglement")
    parser.add_argument("--jobs", type=int, default=1, help="processes, one thread each")
    options = parser.parse_args(arguments)
    if options.dataset == "select":
        paths = run_selection(options.scale, options.out, draws=options.draws, n_jobs=options.jobs)
    else:
        paths = run(
            options.scale,
            options.out,
            dataset=options.dataset,
            parts=options.parts.split(","),
            draws=options.draws,
            start_seeds=options.start_seeds,
            n_jobs=options.jobs,
        )
    for path in paths:
        print(path)
