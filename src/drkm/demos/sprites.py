"""A demo on drawn data: a two-layer model of a few hundred dSprites, with scores, chance levels and rivals."""

from __future__ import annotations

import time
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drkm import metrics
from drkm.demos._shared import draw_rows, fitted, write_explorer
from drkm.estimator import ConstrDRKM
from drkm.explorer import Subject
from drkm.inference.typical import typical_row
from drkm.inputs.preparation import Preparation
from drkm.plotting import style
from drkm.wording import for_terminal

#: unseen images that are scored
N_EVALUATION = 1500
#: column of the printed table → metric it comes from
COLUMNS = {"IRS": "irs", "MIG": "mig", "SAP": "sap", "DCI disentanglement": "dci"}
STEPS = np.linspace(-2, 2, 7)
#: components drawn in the figure
DRAWN = 4


def run(out: str | PathLike[str] = "results/demo", n: int = 400) -> list[Path]:
    """Train on n drawn sprites, print scores and chance levels of ours, kernel PCA and random codes, and draw a figure.

    Parameters
    ----------
    out : path
        Folder of the figure, the model and the explorer page.
    n : int
        Training images, at least 50.

    Returns
    -------
    list of Path
        The files written.
    """
    from drkm.datasets import load_dsprites

    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    data = load_dsprites(source="rendered")
    images, factors = data.sample(n + N_EVALUATION, random_state=0)
    rows = images.reshape(len(images), -1) / 255.0
    train, new, known = rows[:n], rows[n:], factors[n:]
    print(f"{n} drawn sprites of 64×64 pixels, two layers of 10 and 5 components, no labels")
    start = time.perf_counter()
    model = fitted(train)
    seconds = time.perf_counter() - start
    print(f"\n{for_terminal(model.summary())}\n")

    start = time.perf_counter()
    codes = model.transform(new)[:, model.layer_slices_[0]]
    print(
        f"trained in {seconds:.1f} s, encoded {len(new)} unseen sprites in {time.perf_counter() - start:.1f} s; "
        f"their factors: {', '.join(data.factor_names)}\n"
    )
    rivals = {
        "ours, layer 1": codes,
        "kernel PCA": ConstrDRKM(10).fit(train).transform(new),
        "random codes": np.random.default_rng(0).standard_normal((len(new), 10)),
    }
    print(table(rivals, known))
    shown = Preparation(shape=images.shape[1:], white=1.0)
    model.save(folder / "sprites.safetensors", preparation=shown)
    figure = draw(model, codes, known, data.factor_names, folder / "sprites.png")
    print(f"\nmodel in {folder / 'sprites.safetensors'}, figure in {figure}")
    labels = dict(zip(data.factor_names, factors[:n].T.tolist(), strict=True))
    subject = Subject(model, preparation=shown, title=f"{n} drawn sprites", labels=labels)
    explorer = write_explorer(subject, folder / "sprites")
    return [folder / "sprites.safetensors", figure, explorer]


def table(rivals: dict[str, NDArray[np.float64]], factors: NDArray[np.int64]) -> str:
    """Return the scores of several sets of codes, each with the score of the same codes with their rows shuffled."""
    lines = [f"{'':<14}" + "".join(f"{name:>22}" for name in COLUMNS)]
    for name, codes in rivals.items():
        # Orthonormal codes have entries of size n^-1/2, and SAP depends on scale.
        found = metrics.evaluate(codes, factors, metrics=list(COLUMNS.values()), standardize=True)
        cells = [f"{found[column].score:.3f} (chance {found[column].chance:.3f})" for column in COLUMNS]
        lines.append(f"{name:<14}" + "".join(f"{cell:>22}" for cell in cells))
    return "\n".join([*lines, "chance: the same codes with their rows shuffled; only what is above it counts"])


def draw(
    model: ConstrDRKM,
    codes: NDArray[np.float64],
    factors: NDArray[np.int64],
    names: tuple[str, ...],
    path: Path,
) -> Path:
    """Draw what the components do to one sprite, and how the codes of unseen sprites depend on the factors."""
    chosen = informative(codes, factors)
    with style() as plt:
        plt.switch_backend("Agg")
        figure = plt.figure(figsize=(11.5, 3.8), layout="constrained")
        halves: Any = figure.subfigures(1, 2, width_ratios=(1.15, 1))
        left, right = halves
        _traversals(left, model, chosen)
        _dependence(right, codes, factors, names, chosen)
        figure.savefig(path, dpi=130)
        plt.close(figure)
    return path


def informative(codes: NDArray[np.float64], factors: NDArray[np.int64]) -> list[int]:
    """Return the codes that are most informative about any factor, only for the figure."""
    # The correlation ratio: the part of a code's variance that lies between the values of a factor.
    ratios = [max(_between(code, factor) for factor in factors.T) for code in codes.T]
    return sorted(np.argsort(ratios)[::-1][:DRAWN].tolist())


def _between(code: NDArray[np.float64], factor: NDArray[np.int64]) -> float:
    means = _group_means(code, factor)
    return float(np.var(means[factor]) / np.var(code)) if np.var(code) > 0 else 0.0


def _group_means(code: NDArray[np.float64], factor: NDArray[np.int64]) -> NDArray[np.float64]:
    counts = np.bincount(factor)
    with np.errstate(invalid="ignore"):
        return np.bincount(factor, weights=code) / counts


def _traversals(figure: Any, model: ConstrDRKM, chosen: list[int]) -> None:
    base, spread = typical_row(model.codes_, model.fitted_), model.codes_.std(axis=0)
    rows = [model.traverse(1, i, model.codes_[base, i] + STEPS * spread[i], base=base) for i in chosen]
    title = "One sprite, one code of layer 1 moved by −2 … 2 deviations"
    draw_rows(figure, rows, [f"code {i}" for i in chosen], title)


def _dependence(
    figure: Any, codes: NDArray[np.float64], factors: NDArray[np.int64], names: tuple[str, ...], chosen: list[int]
) -> None:
    figure.suptitle("Mean code (± deviation) of unseen sprites against each factor", fontsize=10)
    axes = figure.subplots(len(chosen), len(names), sharex="col", sharey="row", squeeze=False)
    for line, index in zip(axes, chosen, strict=True):
        code = codes[:, index]
        for axis, factor in zip(line, factors.T, strict=True):
            values = np.unique(factor)
            mean = np.array([code[factor == value].mean() for value in values])
            spread = np.array([code[factor == value].std() for value in values])
            axis.fill_between(values, mean - spread, mean + spread, alpha=0.25, linewidth=0)
            axis.plot(values, mean, linewidth=1.2)
            axis.set_yticks([])
            axis.tick_params(labelsize=6)
        line[0].set_ylabel(f"code {index}", fontsize=8, rotation=0, ha="right", va="center")
    for axis, name in zip(axes[-1], names, strict=True):
        axis.set_xlabel(name, fontsize=8)
