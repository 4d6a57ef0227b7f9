"""Many small minimisations at once: limited-memory BFGS on the rows of a batch, each with its own step.

The rows are independent problems that share their evaluation: one sweep over the training points serves all.
A row that has converged leaves the sweep; one whose trial fails shortens its step while the others go on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

ARMIJO = 1e-4
#: a step is never longer than this many times the scale of the problem, so that it stays in its basin
LONGEST_STEP = 2.0


class Evaluation(NamedTuple):
    """Value and gradient of each row; `curvature` is a natural scale of the Hessian, or None.

    With a curvature c > 0 the first step is -gradient/c, and its length decides about convergence.
    """

    value: Tensor
    gradient: Tensor
    curvature: Tensor | None


class Minima(NamedTuple):
    """Where each row ended, its value, the number of steps it took and whether it converged."""

    points: Tensor
    values: Tensor
    iterations: Tensor
    converged: Tensor


#: evaluate(points, index): points of the rows in `index`
Function = Callable[[Tensor, Tensor], Evaluation]


def minimise(
    evaluate: Function,
    start: Tensor,
    *,
    scale: float,
    unit: float,
    tol: float,
    max_iter: int,
    memory: int = 4,
    use_curvature: bool = True,
) -> Minima:
    """Minimise one function a row, from the rows of `start`; values never rise beyond rounding.

    Parameters
    ----------
    evaluate : callable
        Value, gradient and curvature of the rows asked for.
    start : Tensor of shape (m, d)
        First points.
    scale, unit : float
        Typical distance in the inputs and typical value of the function.
    tol : float
        A row has converged when its natural step is below tol·scale, or its gradient below tol·unit/scale.
    max_iter : int
        Evaluations of a row.
    memory : int
        Steps remembered by the quasi-Newton direction; 0 is the plain iteration.
    use_curvature : bool
        Take the curvature for the metric of the direction; otherwise it only decides about convergence.
    """
    eps = torch.finfo(start.dtype).eps
    tol = max(tol, 4 * eps)
    x = start.clone()
    m, d = x.shape
    active = torch.arange(m, device=x.device)
    value, gradient, curvature = evaluate(x, active)
    value, gradient = value.clone(), gradient.clone()
    curvature = None if curvature is None else curvature.clone()
    S, Y = x.new_zeros(m, memory, d), x.new_zeros(m, memory, d)
    rho = x.new_zeros(m, memory)

    def directions(index: Tensor) -> Tensor:
        bend = curvature[index] if use_curvature and curvature is not None else None
        return _direction(gradient[index], bend, S[index], Y[index], rho[index], scale)

    direction = directions(active)
    step = x.new_ones(m)
    iterations = torch.zeros(m, dtype=torch.long, device=x.device)
    converged = _stationary(gradient, curvature, scale, unit, tol)
    active = active[~converged]
    for _ in range(max_iter):
        if len(active) == 0:
            break
        p, t, g, v = direction[active], step[active], gradient[active], value[active]
        trial = x[active] + t[:, None] * p
        new = evaluate(trial, active)
        slope = (g * p).sum(dim=1)
        rounding = 8 * eps * (v.abs() + unit)
        accepted = new.value <= v + ARMIJO * t * slope
        accepted |= (new.value <= v + rounding) & (new.gradient.norm(dim=1) < g.norm(dim=1))
        moved = active[accepted]
        if len(moved):
            s, y = trial[accepted] - x[moved], new.gradient[accepted] - g[accepted]
            x[moved], value[moved], gradient[moved] = (
                trial[accepted],
                new.value[accepted],
                new.gradient[accepted],
            )
            iterations[moved] += 1
            if curvature is not None and new.curvature is not None:
                curvature[moved] = new.curvature[accepted]
            if memory:
                _remember(S, Y, rho, moved, s, y)
            direction[moved] = directions(moved)
            step[moved] = 1.0
            bend = None if curvature is None else curvature[moved]
            converged[moved] = _stationary(gradient[moved], bend, scale, unit, tol)
        held = active[~accepted]
        if len(held):
            rise = new.value[~accepted] - v[~accepted]
            descent = (t * slope)[~accepted]
            # The minimum of the parabola through both values and the slope, kept between a tenth and a half.
            ratio = (-descent / (2 * (rise - descent))).nan_to_num(0.1).clamp(0.1, 0.5)
            step[held] *= ratio
            short = step[held] * direction[held].norm(dim=1) <= 1e-2 * tol * scale
            stuck = held[short]
            if len(stuck):
                known = (rho[stuck] > 0).any(dim=1) if memory else torch.zeros_like(stuck, dtype=torch.bool)
                # No step along a quasi-Newton direction: try the plain one; no step there either: a minimum,
                # smooth to rounding, or a kink.
                converged[stuck[~known]] = True
                again = stuck[known]
                if len(again):
                    S[again], Y[again], rho[again] = 0.0, 0.0, 0.0
                    direction[again] = directions(again)
                    step[again] = 1.0
        active = active[~converged[active]]
    return Minima(x, value, iterations, converged)


def _stationary(gradient: Tensor, curvature: Tensor | None, scale: float, unit: float, tol: float) -> Tensor:
    norm = gradient.norm(dim=1)
    if curvature is None:
        return norm * scale <= tol * unit
    return norm <= tol * scale * curvature.clamp(min=0)


def _remember(S: Tensor, Y: Tensor, rho: Tensor, index: Tensor, s: Tensor, y: Tensor) -> None:
    """Append the pairs of positive curvature to the histories of their rows, dropping the oldest."""
    inner = (s * y).sum(dim=1)
    good = inner > 1e-10 * s.norm(dim=1) * y.norm(dim=1)
    index = index[good]
    S[index] = torch.cat([S[index][:, 1:], s[good][:, None]], dim=1)
    Y[index] = torch.cat([Y[index][:, 1:], y[good][:, None]], dim=1)
    rho[index] = torch.cat([rho[index][:, 1:], 1.0 / inner[good][:, None]], dim=1)


def _direction(gradient: Tensor, curvature: Tensor | None, S: Tensor, Y: Tensor, rho: Tensor, scale: float) -> Tensor:
    """Return minus the inverse Hessian, as far as it is known, times the gradient: the two-loop recursion."""
    q = gradient.clone()
    memory = rho.shape[1]
    alphas = []
    for i in reversed(range(memory)):
        alpha = rho[:, i] * (S[:, i] * q).sum(dim=1)
        q -= alpha[:, None] * Y[:, i]
        alphas.append(alpha)
    q *= _first_guess(gradient, curvature, Y, rho, scale)[:, None]
    for i, alpha in enumerate(reversed(alphas)):
        beta = rho[:, i] * (Y[:, i] * q).sum(dim=1)
        q += (alpha - beta)[:, None] * S[:, i]
    length = q.norm(dim=1, keepdim=True)
    return -q * (LONGEST_STEP * scale / length.clamp(min=LONGEST_STEP * scale))


def _first_guess(gradient: Tensor, curvature: Tensor | None, Y: Tensor, rho: Tensor, scale: float) -> Tensor:
    """Return a scale of the inverse Hessian: from the curvature, else the last pair, else a modest step."""
    tiny = torch.finfo(gradient.dtype).tiny
    guess = 0.1 * scale / gradient.norm(dim=1).clamp(min=tiny)
    if rho.shape[1]:
        last = rho[:, -1] * Y[:, -1].square().sum(dim=1)
        guess = torch.where(last > 0, 1.0 / last.clamp(min=tiny), guess)
    if curvature is not None:
        guess = torch.where(curvature > 0, 1.0 / curvature.clamp(min=tiny), guess)
    return guess.clamp(max=torch.finfo(gradient.dtype).max ** 0.5)
