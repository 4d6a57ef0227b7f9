"""Other solvers of the same problem, each at its best: (problem, start, seconds) → the point reached, or None.

All get the common start and the Gram matrix that it needed. A rival stops when its stationarity is at most 1e-6 or its
time is over; time for checking the stationarity of rivals that do not measure it does not count.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from benchmarks.problems import Cell, Problem, cells_of
from drkm.problem import stiefel
from drkm.solvers import Penalty, ProjectedGradient, solve

TOL = 1e-6
Rival = Callable[[Problem, Tensor, float], tuple[Tensor, float]]


def projected_gradient_cached(problem: Problem, H: Tensor, seconds: float) -> tuple[Tensor, float]:
    """The authors' later method with our cached K_1 and closed-form gradient."""
    result = solve(ProjectedGradient(), problem.energy, H, tol=TOL, max_iter=10**9, max_seconds=seconds)
    return result.H, result.seconds


def projected_gradient_published(problem: Problem, H: Tensor, seconds: float) -> tuple[Tensor, float]:
    """The same method as published: automatic differentiation, both Gram matrices recomputed at every evaluation."""
    clock = time.perf_counter()
    length = 1.0

    def gradient(H: Tensor) -> tuple[float, Tensor]:
        H = H.clone().requires_grad_()
        value = problem.cost(H)
        return value.item(), torch.autograd.grad(value, H)[0]

    value, G = gradient(H)
    while stiefel.stationarity(H, G) > TOL and time.perf_counter() - clock < seconds:
        length *= 2
        while True:
            trial = stiefel.polar(H - length * G)
            with torch.no_grad():
                trial_value = problem.cost(trial).item()
            if trial_value <= value - 1e-4 / length * float((trial - H).square().sum()) or length < 1e-12:
                break
            length /= 2
        H = trial
        value, G = gradient(H)
    return H, time.perf_counter() - clock


def algorithm_1(problem: Problem, H: Tensor, seconds: float) -> tuple[Tensor, float]:
    """The paper's quadratic penalty with Adam, to the end of its schedule, with our closed-form gradient."""
    result = solve(Penalty(), problem.energy, H, tol=TOL, max_seconds=seconds)
    return result.H, result.seconds


def pymanopt_rival(optimiser: str) -> Rival:
    """pymanopt with its torch backend and K_1 cached."""

    def run(problem: Problem, H: Tensor, seconds: float) -> tuple[Tensor, float]:
        import pymanopt

        manifold = pymanopt.manifolds.Stiefel(*H.shape)
        K1 = problem.energy.first.K  # type: ignore[attr-defined]

        @pymanopt.function.pytorch(manifold)
        def cost(H: Tensor) -> Tensor:
            return problem.cost(H, K1)

        # pymanopt stops by the absolute norm of the gradient; ‖G‖ hardly changes during a run.
        scale = float(problem.energy.value_and_gradient(H).gradient.norm())
        kind = getattr(pymanopt.optimizers, optimiser)
        options = {"max_iterations": 10**7, "min_gradient_norm": TOL * scale, "min_step_size": 0.0, "verbosity": 0}
        search = kind(max_time=seconds, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clock = time.perf_counter()
            point = search.run(pymanopt.Problem(manifold, cost), initial_point=H.numpy()).point
        return torch.from_numpy(np.asarray(point)), time.perf_counter() - clock

    return run


def geoopt_adam(problem: Problem, H: Tensor, seconds: float) -> tuple[Tensor, float]:
    """geoopt's Riemannian Adam on its Euclidean Stiefel manifold, with the best of three learning rates.

    The rate is chosen in short runs, which are not counted.
    """
    rates = (1e-3, 3e-3, 1e-2)
    pilots = {rate: problem.energy.value(_adam(problem, H, 0.05 * seconds, rate)[0]) for rate in rates}
    return _adam(problem, H, seconds, min(pilots, key=lambda rate: pilots[rate]))


def _adam(problem: Problem, H: Tensor, seconds: float, rate: float) -> tuple[Tensor, float]:
    import geoopt

    K1 = problem.energy.first.K  # type: ignore[attr-defined]
    point = geoopt.ManifoldParameter(H.clone(), manifold=geoopt.EuclideanStiefel())
    optimiser = geoopt.optim.RiemannianAdam([point], lr=rate, stabilize=10)
    spent = 0.0
    while True:
        clock = time.perf_counter()
        for _ in range(25):
            optimiser.zero_grad()
            problem.cost(point, K1).backward()
            optimiser.step()
        spent += time.perf_counter() - clock
        now = stiefel.polar(point.detach())
        if spent >= seconds or stationarity_of(problem, now) <= TOL:
            return now, spent


def stationarity_of(problem: Problem, H: Tensor) -> float:
    return stiefel.stationarity(H, problem.energy.value_and_gradient(H).gradient)


RIVALS: dict[str, Rival] = {
    "projected gradient, cached": projected_gradient_cached,
    "projected gradient, published": projected_gradient_published,
    "Algorithm 1": algorithm_1,
    "pymanopt CG": pymanopt_rival("ConjugateGradient"),
    "pymanopt TR": pymanopt_rival("TrustRegions"),
    "geoopt Adam": geoopt_adam,
}


def asked(words: Sequence[str], sizes: Sequence[int]) -> tuple[list[Cell], dict[str, Rival]]:
    """Read "n" and "n:row" as cells, other words as parts of rivals' names; without any, all cells and all rivals."""
    numbers = [word for word in words if word[0].isdigit()] or [str(n) for n in sizes]
    parts = [word for word in words if not word[0].isdigit()]
    unknown = [part for part in parts if not any(part in name for name in RIVALS)]
    if unknown:
        sys.exit(f"unknown rival {', '.join(unknown)}, there are {', '.join(RIVALS)}")
    chosen = {name: rival for name, rival in RIVALS.items() if not parts or any(part in name for part in parts)}
    return [cell for word in numbers for cell in cells_of(word)], chosen
