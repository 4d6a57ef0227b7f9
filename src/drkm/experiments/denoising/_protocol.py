"""The paper's denoising protocol: s = (2, 1) against kernel PCA with 3 components, starting at the noisy point.

The paper leaves open how the error is measured, which components enter the reconstruction, how the bandwidths
are selected on the validation points, how many steps its iteration takes, and whether β is normalised (in its formula
it is not). Here all components enter, bandwidths have the least validation error by the measure that is reported, and
both a fixed number of steps and iteration to convergence are tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from drkm.estimator import ConstrDRKM
from drkm.experiments.denoising._problems import FIRST_MEASURE, Array, NoisyCurve, mean_squared_error
from drkm.experiments.quiet import quiet
from drkm.kernels import RBF

#: σ_2²: the value that the paper uses elsewhere, at which layer 2 is the constant vector, and the scale of the codes
DEEP_BANDWIDTHS: tuple[float | str, ...] = (50.0, "scale")
#: iterations of a fit
PROTOCOL_STEPS = 40
#: (β normalised, steps of the iteration or None for convergence)
VARIANTS: tuple[tuple[bool, int | None], ...] = ((False, None), (False, 10), (True, None))

MEASURES = {
    FIRST_MEASURE: lambda x, clean, noisy, curve: mean_squared_error(x, clean),
    "mean distance to the clean point": lambda x, clean, noisy, curve: float(np.linalg.norm(x - clean, axis=1).mean()),
    "mean squared error to the noisy point": lambda x, clean, noisy, curve: mean_squared_error(x, noisy),
    "mean distance to the curve": lambda x, clean, noisy, curve: float(curve.distance(x).mean()),
}


@dataclass(frozen=True)
class Candidate:
    """One fitted model of the protocol with one variant of the iteration."""

    name: str
    normalized: bool
    steps: int | None
    bandwidths: tuple[Any, ...]
    model: ConstrDRKM
    problem: NoisyCurve

    @cached_property
    def validation(self) -> dict[str, float]:
        """Errors on the validation points, by measure."""
        problem = self.problem
        return self._errors(self._denoise(problem.validation), problem.validation_clean, problem.validation)

    @cached_property
    def points(self) -> Array:
        """The denoised training points; computed only for selected candidates."""
        return self._denoise(self.problem.train)

    @cached_property
    def training(self) -> dict[str, float]:
        """Errors on the training points by measure, which are those reported."""
        return self._errors(self.points, self.problem.clean, self.problem.train)

    def _denoise(self, points: Array) -> Array:
        return reconstruct(self.model, points, normalized=self.normalized, steps=self.steps)

    def _errors(self, points: Array, clean: Array, noisy: Array) -> dict[str, float]:
        curve = self.problem.curve
        return {measure: error(points, clean, noisy, curve) for measure, error in MEASURES.items()}


def protocol_models(train: Array, sigma2: float) -> list[tuple[str, tuple[Any, ...], ConstrDRKM]]:
    """Return the fitted models of the protocol at one σ_1²: kernel PCA and the deep model at each σ_2²."""
    models: list[tuple[str, tuple[Any, ...], ConstrDRKM]] = []
    with quiet():
        shallow = ConstrDRKM(3, kernel=RBF(sigma2)).fit(train)
        models.append(("kernel PCA", (sigma2,), shallow))
        for second in DEEP_BANDWIDTHS:
            settings: dict[str, Any] = {"eta": 1.0, "tol": 1e-3, "max_iter": PROTOCOL_STEPS}
            deep = ConstrDRKM((2, 1), kernel=[RBF(sigma2), RBF(second)], **settings).fit(train)
            models.append(("deep", (sigma2, second), deep))
    return models


def candidates(problem: NoisyCurve, bandwidths: Sequence[float]) -> list[Candidate]:
    """Return every model of the protocol at every bandwidth, with every variant of the iteration."""
    return [
        Candidate(name, normalized, steps, widths, model, problem)
        for sigma2 in bandwidths
        for name, widths, model in protocol_models(problem.train, sigma2)
        for normalized, steps in VARIANTS
    ]


def reconstruct(
    model: ConstrDRKM, X: Array, components: Any = None, *, normalized: bool = False, steps: int | None = None
) -> Array:
    """Apply a number of plain steps of the paper's iteration to the points, or iterate to convergence."""
    options: dict[str, Any] = {"tol": 1e-5} if steps is None else {"tol": 1e-12, "memory": 0, "max_iter": steps}
    found = model.reconstruct(X, components, normalized=normalized, start="point", **options)
    return np.asarray(found.points)


def best(
    found: Sequence[Candidate], name: str, measure: str, *, normalized: bool = False, steps: int | None = None
) -> Candidate:
    """Return the candidate of a model with the least validation error."""
    wanted = (name, normalized, steps)
    among = [entry for entry in found if (entry.name, entry.normalized, entry.steps) == wanted]
    return min(among, key=lambda entry: entry.validation[measure])
