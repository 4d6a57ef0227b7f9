"""The choice of bandwidths and axes: every candidate on dSprites and SmallNORB, with criteria that see no factors."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import kurtosis, rankdata

from drkm import metrics
from drkm.axes import ica, varimax
from drkm.experiments import disentanglement as study
from drkm.experiments._disentanglement_rivals import LAYERS, Rule, encode, one_layer, quiet, rows_of, two_layers

DATASETS = ("dsprites", "smallnorb")
AXES = ("ritz", "varimax", "ica")
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
#: second layers tried: the default one, and one that pulls less at the first
DEEP = (Rule(), Rule(deep_eta=10.0))
#: images, the same for all draws, on which the agreement between fits to different draws is measured
COMMON = 500
FIELDS = (
    *("dataset", "layers", "center", "deep_width", "deep_eta", "width", "axes", "draw"),
    *("irs", "irs_chance", "irs_above", "mig", "mig_chance"),
    *("agreement", "dependence", "kurtosis", "train_s", "iterations"),
)


@dataclass(frozen=True)
class Task:
    """One fit, reported on all axes."""

    dataset: str
    draw: int
    rule: Rule
    deep: bool
    n_train: int
    n_evaluation: int


def perform(task: Task) -> list[dict[str, Any]]:
    """Fit once, score on every choice of axes; the codes of the common images go along for the agreement."""
    problem = study.draw(task.dataset, task.draw, task.n_train, task.n_evaluation)
    common, _ = study._dataset(task.dataset).sample(COMMON, random_state=10_000)
    rows = rows_of(problem.train)
    start = time.perf_counter()
    with quiet():
        model = two_layers(rows, task.rule) if task.deep else one_layer(rows, task.rule, center=task.rule.center)
        model.fit(rows)
    seconds = time.perf_counter() - start
    codes, shared = encode(model, problem.evaluation), encode(model, common)
    base = torch.from_numpy(len(rows) ** 0.5 * model.codes_[:, : LAYERS[0]])
    out = []
    for axes in AXES:
        R = turn(axes, base)
        turned = codes @ R
        out.append(
            {
                "dataset": task.dataset,
                "layers": 2 if task.deep else 1,
                "center": task.rule.center,
                "deep_width": task.rule.deep_width if task.deep else "",
                "deep_eta": task.rule.deep_eta if task.deep else "",
                "width": task.rule.width,
                "axes": axes,
                "draw": task.draw,
                **study.scores_of(turned, problem.factors, with_dci=False),
                "dependence": metrics.unsupervised(turned).mutual_information,
                "kurtosis": float(np.mean(kurtosis(turned))),
                "train_s": seconds,
                "iterations": model.n_iter_,
                "common": shared @ R,
            }
        )
    return out


def turn(axes: str, codes: torch.Tensor) -> NDArray[np.float64]:
    """Return the rotation from Ritz axes to others."""
    if axes == "ritz":
        return np.eye(codes.shape[1])
    return {"varimax": varimax, "ica": ica}[axes](codes).numpy()


def agreement(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return how far two sets of codes of the same images agree code by code, up to order, sign and monotone maps.

    The unsupervised disentanglement ranking of Duan et al. (2020) with rank correlations R: the mean over codes of
    both sets of max²/sum of |R| along the other set. It is 1 where every code has one partner and no second one.
    """
    ranks = [np.apply_along_axis(rankdata, 0, codes) for codes in (first, second)]
    R = np.abs(np.corrcoef(ranks[0].T, ranks[1].T)[: first.shape[1], first.shape[1] :])
    rows, columns = R.max(axis=1) ** 2 / R.sum(axis=1), R.max(axis=0) ** 2 / R.sum(axis=0)
    return float(np.concatenate([rows, columns]).mean())


def key_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what names a candidate."""
    return tuple(row[name] for name in ("layers", "center", "deep_width", "deep_eta", "width", "axes"))


def add_agreement(rows: Sequence[dict[str, Any]]) -> None:
    """Set the agreement of every candidate on every dataset: the mean over pairs of draws."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["dataset"], *key_of(row)), []).append(row)
    for group in groups.values():
        pairs = [agreement(a["common"], b["common"]) for a, b in combinations(group, 2)]
        for row in group:
            row["agreement"] = float(np.mean(pairs)) if pairs else float("nan")


def run(
    scale: str = "paper",
    out: str | PathLike[str] = "results/disentanglement",
    *,
    draws: int = 5,
    deep: Sequence[Rule] = DEEP,
    widths: Sequence[float] = WIDTHS,
    datasets: Sequence[str] = DATASETS,
    n_jobs: int = 1,
) -> list[Path]:
    """Score all candidates and write every run as CSV, and means over draws as Markdown."""
    n_train, n_evaluation = study.SIZES[scale]
    kinds = [(Rule(), False), (Rule(center=True), False), *((rule, True) for rule in deep)]
    kinds.sort(key=lambda kind: kind[0] != Rule())
    tasks = [
        Task(dataset, number, replace(rule, width=width), two, n_train, n_evaluation)
        for rule, two in kinds
        for dataset in datasets
        for number in range(draws)
        for width in widths
    ]
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    table, text = folder / "selection.csv", folder / "selection.md"
    rows: list[dict[str, Any]] = []
    for done, found in enumerate(study.in_processes(perform, tasks, n_jobs), 1):
        rows += found
        if done % 20 == 0 or done == len(tasks):
            add_agreement(rows)
            rows.sort(key=lambda row: tuple(map(str, (row["dataset"], *key_of(row), row["draw"]))))
            study.write_rows(table, [{name: row[name] for name in FIELDS} for row in rows], FIELDS)
            text.write_text(summary(rows), encoding="utf-8")
            print(f"{done} of {len(tasks)} fits", flush=True)
    return [table, text]


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return one line a candidate: means on both datasets, and draws on which it beats kernel PCA with its kernel."""
    plain = {
        (r["dataset"], r["draw"], r["width"]): r for r in rows if key_of(r)[:2] == (1, False) and r["axes"] == "ritz"
    }
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    scores = ("irs_above", "mig", "agreement")
    heads = [f"{dataset} {score}" for dataset in datasets for score in scores]
    lines = ["| layers | centred | σ²₂ | η₂ | σ²₁ | axes | " + " | ".join(heads) + " | both ahead |"]
    lines.append("|" + "---|" * (7 + len(heads)))
    for key in dict.fromkeys(key_of(row) for row in rows):
        runs = [row for row in rows if key_of(row) == key]
        cells = []
        for dataset in datasets:
            part = [row for row in runs if row["dataset"] == dataset]
            cells += [f"{np.mean([float(row[s]) for row in part]):.3f}" if part else "" for s in scores]
        pairs = [(row, plain.get((row["dataset"], row["draw"], row["width"]))) for row in runs]
        ahead = sum(beats(row, rival) for row, rival in pairs if rival is not None)
        lines.append("| " + " | ".join([*map(str, key), *cells, f"{ahead} of {len(pairs)}"]) + " |")
    return "\n".join(lines) + "\n"


def beats(row: Mapping[str, Any], rival: Mapping[str, Any]) -> bool:
    """Return whether one run is ahead of another in IRS above chance and in MIG."""
    return all(float(row[score]) > float(rival[score]) for score in ("irs_above", "mig"))
