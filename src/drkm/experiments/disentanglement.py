"""Disentanglement of few images: our model, kernel PCA, the β-VAE and the paper's recipe, scored beside chance.

`python -m drkm.experiments.disentanglement cars3d --draws 5 --parts defaults,ours,kpca,paper,beta-vae` runs the study
of docs/cars3d.md; `python -m drkm.experiments.disentanglement select` the choice of bandwidths and axes on dSprites and
SmallNORB that precedes it.
"""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drkm import metrics
from drkm.datasets import load_cars3d, load_dsprites, load_smallnorb
from drkm.datasets._factors import FactorDataset
from drkm.experiments._disentanglement_rivals import KINDS, Codes, Rule, codes_of

DATASETS: dict[str, Callable[[], FactorDataset]] = {
    "dsprites": lambda: load_dsprites(source="rendered"),
    "smallnorb": load_smallnorb,
    "cars3d": load_cars3d,
}
#: what a part of the study trains
PARTS: dict[str, tuple[str, ...]] = {
    "ours": ("ours",),
    "defaults": ("defaults",),
    "kpca": ("kpca-median", "kpca"),
    "kpca-others": ("kpca-axes", "kpca-centred"),
    "beta-vae": ("beta-vae",),
    "paper": ("paper-random", "paper-kpca"),
    "paper-fixed": ("paper-random-fixed", "paper-kpca-fixed"),
    "random": ("random",),
}
#: training images, evaluation images
SIZES = {"paper": (800, 4000), "quick": (200, 1000)}
#: shuffles for the chance level of IRS and MIG
SHUFFLES = 20
SCORES = ("irs", "irs_chance", "irs_above", "mig", "mig_chance", "sap", "dci", "dci_completeness", "dci_accuracy")
FIELDS = ("dataset", "model", "draw", "seed", *SCORES, "train_s", "encode_s", "note")

#: what "ours" means: fixed on dSprites and SmallNORB (docs/cars3d.md), never on Cars3D; "defaults" are the library's
CHOSEN = Rule(width=0.5, deep_eta=10.0)


@dataclass(frozen=True)
class Problem:
    """One training draw: images to train on, and others with their factors to score."""

    train: NDArray[np.uint8]
    evaluation: NDArray[np.uint8]
    factors: NDArray[np.int64]


@lru_cache(maxsize=1)
def _dataset(name: str) -> FactorDataset:
    if name not in DATASETS:
        raise ValueError(f"dataset: unknown name {name!r}, allowed are {', '.join(DATASETS)}")
    return DATASETS[name]()


def draw(dataset: str, number: int, n_train: int = 800, n_evaluation: int = 4000) -> Problem:
    """Draw training and evaluation images together without replacement: no image is in both."""
    images, factors = _dataset(dataset).sample(n_train + n_evaluation, random_state=number)
    return Problem(images[:n_train], images[n_train:], factors[n_train:])


def scores_of(codes: NDArray[np.float64], factors: NDArray[np.int64], *, with_dci: bool = True) -> dict[str, float]:
    """Return IRS, MIG (each beside shuffled codes), SAP and DCI.

    IRS, MIG and DCI take the codes as they are. SAP takes them standardised: its support vector machines depend on
    scale, and orthonormal codes have entries of size n^-1/2 where those of a β-VAE have size 1.
    """
    irs, mig = float(metrics.irs(codes, factors)), float(metrics.mig(codes, factors))
    chance = float(metrics.chance("irs", codes, factors, repeats=SHUFFLES))
    out = {
        "irs": irs,
        "irs_chance": chance,
        "irs_above": irs - chance,
        "mig": mig,
        "mig_chance": float(metrics.chance("mig", codes, factors, repeats=SHUFFLES)),
    }
    if with_dci:
        dci = metrics.dci(codes, factors)
        out |= {
            "sap": float(metrics.sap(codes, factors, standardize=True)),
            "dci": dci.disentanglement,
            "dci_completeness": dci.completeness,
            "dci_accuracy": dci.informativeness_test,
        }
    return out


@dataclass(frozen=True)
class Task:
    """One model on one draw."""

    dataset: str
    kind: str
    draw: int
    seed: int
    n_train: int
    n_evaluation: int
    rule: Rule


def perform(task: Task) -> dict[str, Any]:
    """Train, encode and score: one row of the table."""
    problem = draw(task.dataset, task.draw, task.n_train, task.n_evaluation)
    found: Codes = codes_of(task.kind, problem.train, problem.evaluation, seed=task.seed, rule=task.rule)
    named = {"dataset": task.dataset, "model": task.kind, "draw": task.draw, "seed": task.seed}
    timed = {"train_s": found.seconds, "encode_s": found.encoding_seconds, "note": found.note}
    return {**named, **scores_of(found.codes, problem.factors), **timed}


def in_processes(function: Callable[[Any], Any], tasks: Sequence[Any], n_jobs: int) -> Iterator[Any]:
    """Yield results as they come, from processes with one thread each, or in turn where there is one job."""
    if n_jobs <= 1:
        yield from map(function, tasks)
        return
    # A forked process cannot use a GPU that its parent has touched.
    with ProcessPoolExecutor(n_jobs, get_context("spawn"), initializer=_one_thread) as pool:
        for future in as_completed([pool.submit(function, task) for task in tasks]):
            yield future.result()


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def run(
    scale: str = "paper",
    out: str | PathLike[str] = "results/disentanglement",
    *,
    dataset: str = "cars3d",
    parts: Sequence[str] = ("defaults", "ours", "kpca", "paper", "beta-vae", "random"),
    draws: int = 5,
    start_seeds: int = 1,
    rule: Rule | None = None,
    n_jobs: int = 1,
) -> list[Path]:
    """Run the study on one dataset and write every run as CSV, and means and spreads as Markdown.

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
    rule : Rule, optional
        Bandwidths and axes of our model, by default the chosen ones.
    n_jobs : int
        Processes.

    Returns
    -------
    list of Path
        The files written.
    """
    if scale not in SIZES:
        raise ValueError(f"scale: unknown name {scale!r}, allowed are {', '.join(SIZES)}")
    kinds = kinds_of(parts)
    n_train, n_evaluation = SIZES[scale]
    tasks = [
        Task(dataset, kind, number, number + 1000 * repeat, n_train, n_evaluation, rule or CHOSEN)
        for kind in kinds
        for number in range(draws)
        for repeat in range(start_seeds if kind in ("ours", "defaults") else 1)
    ]
    _dataset(dataset)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    table, text = folder / f"{dataset}.csv", folder / f"{dataset}.md"
    rows: list[dict[str, Any]] = []
    for row in in_processes(perform, tasks, n_jobs):
        rows.append(row)
        # Written after every run, so that a long study that is stopped keeps what it has.
        write_rows(table, sorted(rows, key=lambda r: (kinds.index(r["model"]), r["draw"], r["seed"])))
        text.write_text(summary(rows, kinds), encoding="utf-8")
        print(f"{row['model']}, draw {row['draw']}: " + ", ".join(f"{k} {row[k]:.3f}" for k in SCORES), flush=True)
    return [table, text]


def kinds_of(parts: Iterable[str]) -> list[str]:
    """Return the kinds of models that parts name."""
    out: list[str] = []
    for part in parts:
        if part not in PARTS and part not in KINDS:
            raise ValueError(f"parts: unknown name {part!r}, allowed are {', '.join({**PARTS, **KINDS})}")
        out += [kind for kind in PARTS.get(part, (part,)) if kind not in out]
    return out


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]], fields: Sequence[str] = FIELDS) -> None:
    """Write rows as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")


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


def mean_and_spread(values: Sequence[float]) -> str:
    """Return mean ± standard deviation (n - 1)."""
    spread = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{spread}"


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
    parser.add_argument(
        "--parts", default="defaults,ours,kpca,paper,beta-vae,random", help=", ".join({**PARTS, **KINDS})
    )
    parser.add_argument("--scale", choices=SIZES, default="paper")
    parser.add_argument("--start-seeds", type=int, default=1, help="starts of our own model on every draw")
    parser.add_argument("--out", default="results/disentanglement")
    parser.add_argument("--jobs", type=int, default=1, help="processes, one thread each")
    options = parser.parse_args(arguments)
    if options.dataset == "select":
        from drkm.experiments._disentanglement_rule import run as run_selection

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


if __name__ == "__main__":
    main()
