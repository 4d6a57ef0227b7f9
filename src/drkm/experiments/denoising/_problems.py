"""The problems of the denoising experiments: noisy points of plane curves at every scale, and their errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drkm.datasets.curves import Curve
from drkm.datasets.toy2d import CURVES

Array = np.ndarray
#: names of the methods in tables and figures, in this order
NOISY, MEAN_SHIFT, RIVAL = "noisy points", "mean shift", "scikit-learn KernelPCA"
ONE_LAYER, TWO_LAYERS, BOUND = "one layer, selected", "two layers, selected", "Bayes posterior mean"
PAPER_KPCA, PAPER_DEEP = "paper's kernel PCA (3)", "paper's deep model (2, 1)"
ORDER = (NOISY, MEAN_SHIFT, RIVAL, ONE_LAYER, TWO_LAYERS, PAPER_KPCA, PAPER_DEEP, BOUND)
#: the error measure that selects the paper's models and decides the claims
FIRST_MEASURE = "mean squared error to the clean point"
DATASETS = {
    "square": "Square",
    "half_circle": "Half circle",
    "square_spiral": "Square, spiral (Fig. 2)",
    "squares_spiral_ring": "Squares, spiral, ring (Fig. 3)",
}
NOISES = (0.05, 0.1, 0.2)
#: published ratios of the error of kernel PCA to that of the deep model
PUBLISHED = {
    0.05: {"square": 1.22, "half_circle": 1.36, "square_spiral": 3.18, "squares_spiral_ring": 2.51},
    0.1: {"square": 1.09, "half_circle": 1.17, "square_spiral": 1.70, "squares_spiral_ring": 1.62},
    0.2: {"square": 1.06, "half_circle": 1.08, "square_spiral": 1.24, "squares_spiral_ring": 1.21},
}


@dataclass(frozen=True)
class NoisyCurve:
    """Noisy training and validation points of one curve at one noise level, with the clean points behind them."""

    dataset: str
    noise: float
    train: Array
    clean: Array
    validation: Array
    validation_clean: Array

    @property
    def curve(self) -> Curve:
        """The curve the clean points lie on."""
        return CURVES[self.dataset]()


@dataclass(frozen=True)
class CurveSizes:
    """How large an experiment is."""

    n_train: int
    n_validation: int
    #: σ² of layer 1 relative to the noise variance
    widths: tuple[float, ...]
    #: components of layer 1 to try
    components: tuple[int, ...]
    #: σ_1² of the paper's protocol
    protocol: tuple[float, ...]
    #: for scikit-learn's kernel PCA: training points used for selection, bandwidths and numbers of components
    rival_points: int
    rival_widths: tuple[float, ...]
    rival_components: tuple[int, ...]


#: equal selection effort: one and two layers are selected from the same 3×15 bandwidths and numbers of components of
#: layer 1 (quick: 3×12)
SIZES = {
    "quick": CurveSizes(
        n_train=300,
        n_validation=100,
        widths=(5.0, 12.0, 30.0),
        components=(4, 5, 7, 9, 11, 14, 18, 23, 29, 37, 47, 60),
        protocol=(0.005, 0.02, 0.1, 0.5, 2.0),
        rival_points=300,
        rival_widths=(5.0, 12.0, 30.0),
        rival_components=(8, 16, 32),
    ),
    "paper": CurveSizes(
        n_train=3000,
        n_validation=750,
        widths=(2.5, 5.0, 12.0),
        components=tuple(round(4 * (140 / 4) ** (i / 14)) for i in range(15)),
        protocol=(0.002, 0.01, 0.05, 0.5, 2.0),
        rival_points=750,
        rival_widths=(2.5, 5.0, 12.0, 30.0),
        rival_components=(8, 16, 32, 64),
    ),
}
#: same grids as "paper", half of the points
SIZES["medium"] = replace(SIZES["paper"], n_train=1500, n_validation=375)
#: fields that a variant can set
SETTABLE = ("n_train", "n_validation", "widths", "components", "protocol")
#: seed of the data
SEED = 2


def make_problem(dataset: str, noise: float, n_train: int, n_validation: int, seed: int) -> NoisyCurve:
    """Draw one problem; training and validation points are drawn together and split."""
    rng = np.random.default_rng([seed, list(CURVES).index(dataset), round(1000 * noise)])
    clean = CURVES[dataset]().sample(n_train + n_validation, rng)
    noisy = clean + noise * rng.standard_normal(clean.shape)
    return NoisyCurve(dataset, noise, noisy[:n_train], clean[:n_train], noisy[n_train:], clean[n_train:])


def problem_of(parameters: Mapping[str, Any], seed: int) -> tuple[NoisyCurve, CurveSizes]:
    """Return the problem and the sizes of a run, whose parameters are `curve`, `noise` and `sizes`."""
    sizes = CurveSizes(**parameters["sizes"])
    return make_problem(parameters["curve"], parameters["noise"], sizes.n_train, sizes.n_validation, seed), sizes


def mean_squared_error(points: Array, clean: Array) -> float:
    """Return the mean of ‖x̂ - x‖²."""
    return float(((points - clean) ** 2).sum(axis=1).mean())


def errors(problem: NoisyCurve, points: Array) -> dict[str, float]:
    """Return the distances of denoised training points from the clean points and from the curve."""
    return {
        "mse": rounded(mean_squared_error(points, problem.clean)),
        "distance": rounded(float(problem.curve.distance(points).mean())),
    }


def rounded(value: float) -> float:
    """Return a number with six digits, because results are stored as text."""
    return float(f"{value:.6g}")


def posterior_mean(problem: NoisyCurve, points: Array) -> Array:
    """Return E[x | y] under the true density and noise, by quadrature along the curve: the optimal denoiser."""
    import torch

    nodes, weights = (torch.from_numpy(part) for part in problem.curve.quadrature(4000))
    parts = []
    for block in torch.from_numpy(points).split(500):
        exponent = torch.cdist(block, nodes).square() / (-2 * problem.noise**2) + weights.log()
        parts.append(torch.softmax(exponent, dim=1) @ nodes)
    return torch.cat(parts).numpy()


def noise_of(problem: NoisyCurve) -> float:
    """Return the noise level that selection uses: an estimate from the noisy points only."""
    from drkm.selection.noise import estimate_noise

    return estimate_noise(np.concatenate([problem.train, problem.validation]))
