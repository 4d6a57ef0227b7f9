"""The choice of bandwidths and axes: every candidate on dSprites and SmallNORB, with criteria that see no factors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from multiprocessing import get_context
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import kurtosis

from drkm import metrics
from drkm.experiments.disentanglement._models import default_model, encode, quiet, rows_of
from drkm.experiments.disentanglement._tasks import agreement, draw, scores_of
from drkm.experiments.output import write_csv, write_text
from drkm.machine.threads import one_thread_for_good
from drkm.problem.axes import ica, varimax
from drkm.runs import data

#: components of the two layers; the codes of layer 1 are scored
LAYERS = (10, 5)
#: training images, evaluation images
SIZES = {"paper": (800, 4000), "quick": (200, 1000)}
DATASETS = ("sprites", "smallnorb")


@dataclass(frozen=True)
class Rule:
    """What is left to choose in a model, as multiples of the factor-free defaults.

    Attributes
    ----------
    width : float
        σ² of layer 1 relative to half the median squared distance.
    axes : {"ritz", "varimax", "ica"}
    deep_width : float
        σ² of layer 2 relative to 2·s_1/n.
    deep_eta : float
        η_2 beside η_1 = 1: the larger, the less layer 2 pulls at layer 1.
    center : bool
        Whether all layers are centred in feature space.
    """

    width: float = 1.0
    axes: str = "ritz"
    deep_width: float = 1.0
    deep_eta: float = 1.0
    center: bool = False

    def parameters(self, layers: Sequence[int]) -> dict[str, Any]:
        """Return the parameters of a run of our model, without those at their defaults."""
        named = asdict(self)
        if len(layers) == 1:
            named = {name: value for name, value in named.items() if not name.startswith("deep_")}
        chosen = {name: value for name, value in named.items() if value != getattr(DEFAULTS, name)}
        return {"family": "drkm", "layers": list(layers), **chosen}


#: the library's own
DEFAULTS = Rule()

AXES = ("ritz", "varimax", "ica")
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
#: second layers tried: the default one, and one that pulls less at the first
DEEP = (DEFAULTS, Rule(deep_eta=10.0))
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
    problem = draw(task.dataset, task.draw, task.n_train, task.n_evaluation)
    common, _ = data.load(task.dataset).sample(COMMON, random_state=10_000)
    rows = rows_of(problem.train)
    start = time.perf_counter()
    with quiet():
        model = default_model(task.rule.parameters(LAYERS if task.deep else LAYERS[:1]), rows).fit(rows)
    seconds = time.perf_counter() - start
    codes, shared = (encode(model, images)[:, : LAYERS[0]] for images in (problem.evaluation, common))
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
                **_scores(turned, problem.factors),
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


def _scores(codes: NDArray[np.float64], factors: NDArray[np.int64]) -> dict[str, Any]:
    found = scores_of(codes, factors, ("irs", "mig"))
    return {**found, "irs_above": found["irs"] - found["irs_chance"]}


def in_processes(function: Callable[[Any], Any], tasks: Sequence[Any], n_jobs: int) -> Iterator[Any]:
    """Yield results as they come, from processes with one thread each, or in turn where there is one job."""
    if n_jobs <= 1:
        yield from map(function, tasks)
        return
    with ProcessPoolExecutor(n_jobs, get_context("spawn"), initializer=one_thread_for_good) as pool:
        for future in as_completed([pool.submit(function, task) for task in tasks]):
            yield future.result()


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
    n_train, n_evaluation = SIZES[scale]
    kinds = [(DEFAULTS, False), (Rule(center=True), False), *((rule, True) for rule in deep)]
    kinds.sort(key=lambda kind: kind[0] != DEFAULTS)
    tasks = [
        Task(dataset, number, replace(rule, width=width), two, n_train, n_evaluation)
        for rule, two in kinds
        for dataset in datasets
        for number in range(draws)
        for width in widths
    ]
    folder = Path(out)
    table, text = folder / "selection.csv", folder / "selection.md"
    rows: list[dict[str, Any]] = []
    for done, found in enumerate(in_processes(perform, tasks, n_jobs), 1):
        rows += found
        if done % 20 == 0 or done == len(tasks):
            add_agreement(rows)
            rows.sort(key=lambda row: tuple(map(str, (row["dataset"], *key_of(row), row["draw"]))))
            write_csv(rows, table, FIELDS)
            write_text(text, summary(rows))
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
