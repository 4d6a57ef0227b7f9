"""The denoising methods: ours, its rivals, and the Bayes posterior mean, which none can beat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch

from drkm.estimator import ConstrDRKM
from drkm.experiments.denoising import _problems as problems
from drkm.experiments.denoising._problems import Array, CurveSizes, NoisyCurve
from drkm.inference.preimage import preimage
from drkm.inference.subspace import Components
from drkm.kernels import RBF
from drkm.selection import Selection, denoising_losses, perturbations, select
from drkm.solvers import LBFGS

Grid = list[dict[str, list[Any]]]
#: deep models: η, the width of the second kernel relative to its "scale", and the number of components of layer 2
#: relative to that of layer 1. Layer 1 denoises; training it together with layer 2 makes it a little better.
DEEP_ETA = (1.0, 25.0)
DEEP_WIDTH = 0.1
DEEP_SHARE = 0.5
#: iterations of a deep fit: a few give nearly all of the gain
DEEP_STEPS = 5
#: pairs of perturbed copies for the estimated risk: one per dimension of the plane
DRAWS = 2


@dataclass(frozen=True)
class Outcome:
    """Denoised training points of one method, and the settings that it selected."""

    points: Array
    chosen: str = ""


Method = Callable[[NoisyCurve, CurveSizes, float], Outcome]
Denoiser = Callable[[Array], Array]
RivalSettings = tuple[float, int, float]


def mean_shift(problem: NoisyCurve, sizes: CurveSizes, noise: float) -> Outcome:
    """Return the points after Gaussian mean shift, with bandwidth and number of steps of least estimated risk."""
    X = torch.from_numpy(problem.train)
    ones = torch.full((len(X), 1), len(X) ** -0.5, dtype=X.dtype)

    def shift(sigma2: float, steps: int | None) -> Denoiser:
        kernel = RBF(sigma2)
        options: dict[str, Any] = {"tol": 1e-4} if steps is None else {"max_iter": steps, "memory": 0}
        components = Components(kernel, X, ones)

        def denoise(points: Array) -> Array:
            start = torch.from_numpy(points)
            rows = [components.coordinates(kernel(part, X)) for part in start.split(1024)]
            return preimage(components, torch.cat(rows), start=start, **options).points.numpy()

        return denoise

    settings: list[tuple[float, int | None]] = [(f * noise**2, None) for f in (0.1, 0.3)]
    settings += [(f * noise**2, steps) for f in (1.0, 2.0, 4.0) for steps in (1, 3)]
    best, (sigma2, steps) = least_risk(problem.validation, noise, {entry: shift(*entry) for entry in settings})
    text = f"σ²={sigma2:.3g}, {'converged' if steps is None else f'steps {steps}'}"
    return Outcome(best(problem.train), text)


def rival_kernel_pca(problem: NoisyCurve, sizes: CurveSizes, noise: float) -> Outcome:
    """Return the points denoised by scikit-learn's KernelPCA, with the settings of least estimated risk."""
    some, options = problem.train[: sizes.rival_points], {"eigen_solver": "randomized", "random_state": 0}
    settings = rival_settings([f * noise**2 for f in sizes.rival_widths], sizes.rival_components)
    denoisers = {entry: rival(entry, some, **options) for entry in settings}
    _, chosen = least_risk(problem.validation, noise, denoisers)
    return Outcome(rival(chosen, problem.train, **options)(problem.train), rival_choice(chosen))


def rival_settings(widths: Sequence[float], components: Sequence[int]) -> list[RivalSettings]:
    """Return the candidates (σ², number of components, α) for scikit-learn's KernelPCA."""
    return list(product(widths, components, (0.01, 1.0)))


def rival(settings: RivalSettings, X: Array, **options: Any) -> Denoiser:
    """Return scikit-learn's KernelPCA, fitted to these points, as a denoiser."""
    from sklearn.decomposition import KernelPCA

    sigma2, components, alpha = settings
    shared = {"kernel": "rbf", "gamma": 0.5 / sigma2, "fit_inverse_transform": True, "alpha": alpha}
    model = KernelPCA(components, **shared, **options).fit(X)
    return lambda points: model.inverse_transform(model.transform(points))


def rival_choice(settings: RivalSettings) -> str:
    """Return the settings of scikit-learn's KernelPCA in words."""
    return f"σ²={settings[0]:.3g}, {settings[1]} components, α={settings[2]:g}"


def least_risk(held: Array, noise: float, denoisers: dict[Any, Denoiser], draws: int = DRAWS) -> tuple[Denoiser, Any]:
    """Return the denoiser of least estimated risk on held-out noisy points, and its key."""
    omega = perturbations(held.shape, noise, draws, np.random.default_rng(0))
    risks = {key: denoising_losses(f, held, omega)[0].mean() for key, f in denoisers.items()}
    best = min(risks, key=lambda key: risks[key])
    return denoisers[best], best


def select_layers(layers: int, problem: NoisyCurve, sizes: CurveSizes, noise: float) -> Selection:
    """Select bandwidth and number of components of the first layer of a one- or two-layer model."""
    widths, held = [f * noise**2 for f in sizes.widths], problem.validation
    if layers == 1:
        grid = one_layer_grid(widths, sizes.components)
    else:
        grid = deep_grid(widths, sizes.components, len(problem.train))
    return select(problem.train, grid, estimator=base_model(layers), validation=held, noise=noise, draws=DRAWS)


def one_layer_grid(widths: Sequence[float], components: Sequence[int]) -> Grid:
    """Return the one-layer candidates at these σ²; those that differ only in components share a fit."""
    return [{"n_components": [max(components)], "sigma2": list(widths), "keep": list(components)}]


def deep_grid(widths: Sequence[float], components: Sequence[int], n: int) -> Grid:
    """Return the two-layer candidates at these σ_1², for n training points; their first layer denoises."""
    shapes = [(s, max(1, round(DEEP_SHARE * s))) for s in components]
    return [{**deep_fits(widths, shape, n, DEEP_WIDTH), "components": ["layer 1"]} for shape in shapes]


def deep_fits(widths: Sequence[float], shape: tuple[int, int], n: int, second: float) -> dict[str, list[Any]]:
    """Return fits of two layers of this shape at these σ_1²; σ_2² is `second` relative to its "scale"."""
    return {"n_components": [shape], "sigma2": [(width, second * 2 * shape[0] / n) for width in widths]}


def base_model(layers: int) -> ConstrDRKM:
    """Return the estimator, with no encoder to prepare; deep fits take few plain steps from layer-wise kernel PCA."""
    if layers == 1:
        return ConstrDRKM(tol=1e-5, encoder="projection")
    return ConstrDRKM(eta=DEEP_ETA, tol=1e-3, max_iter=DEEP_STEPS, solver=LBFGS(warmup=False), encoder="projection")


def choice(found: Selection) -> str:
    """Return σ² of the first layer and the components that were selected."""
    best = found.best_params
    sigma2 = best["sigma2"] if isinstance(best["sigma2"], float) else best["sigma2"][0]
    components = best["keep"] if "keep" in best else f"{best['components']} of {best['n_components']}"
    return f"σ²={sigma2:.3g}, components {components}"


def selected(layers: int, problem: NoisyCurve, sizes: CurveSizes, noise: float) -> Outcome:
    """Return the points denoised by the selected model of one or two layers."""
    found = select_layers(layers, problem, sizes, noise)
    return Outcome(found.denoise(problem.train), choice(found))


#: name → method; the first changes nothing, and the last knows the true curve and the true noise
METHODS: dict[str, Method] = {
    problems.NOISY: lambda problem, sizes, noise: Outcome(problem.train),
    problems.MEAN_SHIFT: mean_shift,
    problems.RIVAL: rival_kernel_pca,
    problems.ONE_LAYER: partial(selected, 1),
    problems.TWO_LAYERS: partial(selected, 2),
    problems.BOUND: lambda problem, sizes, noise: Outcome(
        problems.posterior_mean(problem, problem.train), "true density"
    ),
}
