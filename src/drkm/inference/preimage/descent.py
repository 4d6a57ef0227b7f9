"""Many small minimisation problems at once: Newton's method or limited-memory BFGS on the rows of a batch.

The rows are independent problems that share their evaluation: one sweep over the training points serves all. A row that
has converged leaves the sweep; a row whose trial fails shortens its step while the others continue. Newton steps are
taken in rows whose Hessian is given and positive definite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

ARMIJO = 1e-4
#: maximum step length in units of the scale of the problem, so that a step stays in its basin
LONGEST_STEP = 2.0
#: a Hessian counts as positive definite if its pivots are above this fraction of its largest diagonal entry
LEAST_PIVOT = 1e-6
#: factor by which an estimated gradient must be below the tolerance
SAFETY = 10.0


class Derivatives(NamedTuple):
    """Value and gradient of each row; `curvature` is a natural scale of the Hessian, or None.

    With a curvature c > 0 the plain step is -gradient/c, and its length decides about convergence. A `hessian` (m×d×d)
    gives Newton steps.
    """

    value: Tensor
    gradient: Tensor
    curvature: Tensor | None = None
    hessian: Tensor | None = None

    def of(self, rows: Tensor) -> Derivatives:
        """Return some of the rows."""
        return Derivatives(*(None if part is None else part[rows] for part in self))  # type: ignore[arg-type]

    def in_units_of(self, length: float) -> Derivatives:
        """Return the derivatives with respect to x/length."""
        curvature, hessian = (None if part is None else length**2 * part for part in (self.curvature, self.hessian))
        return Derivatives(self.value, length * self.gradient, curvature, hessian)


class Minima(NamedTuple):
    """The final point of each row, its value, the number of steps and whether it converged."""

    points: Tensor
    values: Tensor
    iterations: Tensor
    converged: Tensor


#: evaluate(points, index): points of the rows in `index`
Function = Callable[[Tensor, Tensor], Derivatives]


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
    """Minimise one function per row, from the rows of `start`; values never increase beyond rounding.

    Parameters
    ----------
    evaluate : callable
        Returns value, gradient, curvature and Hessian of the given rows.
    start : Tensor of shape (m, d)
        Initial points.
    scale, unit : float
        Typical distance in the inputs and typical value of the function.
    tol : float
        A row has converged when its natural step is below tol·scale, or its gradient below tol·unit/scale; after a
        last Newton step that gradient is an estimate.
    max_iter : int
        Maximum number of evaluations per row.
    memory : int
        Number of steps that the quasi-Newton direction remembers; 0 is the plain iteration.
    use_curvature : bool
        Use the curvature as the metric of the direction; otherwise it only decides about convergence.
    """
    tol = max(tol, 4 * torch.finfo(start.dtype).eps)
    search = _Descent(evaluate, start, scale, unit, tol, memory, use_curvature)
    for _ in range(max_iter):
        active = (~search.converged).nonzero()[:, 0]
        if len(active) == 0:
            break
        search.advance(active)
    return Minima(search.x, search.value, search.iterations, search.converged)


class _Descent:
    """The current point of every row, its direction and the length of its next step."""

    def __init__(
        self,
        evaluate: Function,
        start: Tensor,
        scale: float,
        unit: float,
        tol: float,
        memory: int,
        use_curvature: bool,
    ):
        self.evaluate, self.use_curvature = evaluate, use_curvature
        self.scale, self.unit, self.tol = scale, unit, tol
        self.x = start.clone()
        m, d = start.shape
        everywhere = torch.arange(m, device=start.device)
        first = evaluate(self.x, everywhere)
        self.value, self.gradient = first.value.clone(), first.gradient.clone()
        self.curvature, self.hessian = (None if part is None else part.clone() for part in first[2:])
        self.memory = memory
        self.S, self.Y = (start.new_zeros(m, memory, d) for _ in range(2))
        self.rho = start.new_zeros(m, memory)
        #: slot of each row's oldest pair, which the next one replaces
        self.oldest = torch.zeros(m, dtype=torch.long, device=start.device)
        self.direction, self.step = torch.empty_like(start), start.new_ones(m)
        self.by_newton = torch.zeros(m, dtype=torch.bool, device=start.device)
        self.iterations = torch.zeros(m, dtype=torch.long, device=start.device)
        self._aim(everywhere, first.hessian)
        self.converged = self._stationary(everywhere, self.gradient.norm(dim=1))

    def advance(self, active: Tensor) -> None:
        """Try a step in every row of `active`: rows move, or shorten the step."""
        p, t, g, v = self.direction[active], self.step[active], self.gradient[active], self.value[active]
        trial = self.x[active] + t[:, None] * p
        new = self.evaluate(trial, active)
        slope = (g * p).sum(dim=1)
        rounding = 8 * torch.finfo(v.dtype).eps * (v.abs() + self.unit)
        # As a difference: next to a large value a small descent rounds to 0, and a step that does not move would pass.
        rise = new.value - v
        flatter = new.gradient.norm(dim=1) < g.norm(dim=1)
        # Values within rounding are not reliable, but gradients are: on a plateau they still point down after the step,
        # behind a minimum they do not, and a step accepted there would be undone by the next, over and over.
        onward = (new.gradient * p).sum(dim=1) <= 0
        accepted = (rise <= ARMIJO * t * slope) & ((rise < -rounding) | onward)
        accepted |= (rise <= rounding) & flatter
        if accepted.all():
            self._move(active, trial, new)
            return
        if accepted.any():
            self._move(active[accepted], trial[accepted], new.of(accepted))
        held = ~accepted
        self._shorten(active[held], (t * slope)[held], rise[held])

    def _move(self, index: Tensor, points: Tensor, new: Derivatives) -> None:
        step = points - self.x[index]
        if self.memory:
            self._remember(index, step, new.gradient - self.gradient[index])
        self.x[index], self.value[index], self.gradient[index] = points, new.value, new.gradient
        if self.curvature is not None and new.curvature is not None:
            self.curvature[index] = new.curvature
        self.iterations[index] += 1
        self.converged[index] = self._stationary(index, new.gradient.norm(dim=1))
        self._aim(index, new.hessian)
        if self.hessian is not None and new.hessian is not None:
            turn = torch.linalg.matrix_norm(new.hessian - self.hessian[index])
            self.hessian[index] = new.hessian
            self._finish(index, step, turn)

    def _finish(self, index: Tensor, before: Tensor, turn: Tensor) -> None:
        """Take a last Newton step without another evaluation if it surely reaches the tolerance.

        A Newton step p leaves a gradient T(p, p)/2, where T are the third derivatives. Their size is estimated from the
        previous step, by how much it changed the Hessian and by the gradient it left; only its part along p counts,
        because it may have been long where T vanishes. The quadratic model gives the new value.
        """
        p, gradient = self.direction[index], self.gradient[index]
        length = p.norm(dim=1)
        along = (before * p).sum(dim=1).abs() / length
        third = torch.maximum(turn / along, 2 * gradient.norm(dim=1) / along.square())
        sure = self._stationary(index, SAFETY * 0.5 * third * length.square())
        last = sure & self.by_newton[index] & ~self.converged[index]
        if last.any():
            index, p, gradient = index[last], p[last], gradient[last]
            self.x[index] += p
            self.value[index] += 0.5 * (gradient * p).sum(dim=1)
            self.iterations[index] += 1
            self.converged[index] = True

    def _shorten(self, index: Tensor, descent: Tensor, rise: Tensor) -> None:
        # The minimum of the parabola through both values and the slope, kept between a tenth and a half.
        self.step[index] *= (-descent / (2 * (rise - descent))).nan_to_num(0.1).clamp(0.1, 0.5)
        short = self.step[index] * self.direction[index].norm(dim=1) <= 1e-2 * self.tol * self.scale
        stuck = index[short]
        # If no step along a refined direction works, try the plain one; if that fails too, the point is a minimum up
        # to rounding, or a kink.
        refined = self.by_newton[stuck] | (self.rho[stuck] > 0).any(dim=1)
        self.converged[stuck[~refined]] = True
        again = stuck[refined]
        if len(again):
            self.rho[again] = 0.0
            self._aim(again)

    def _aim(self, index: Tensor, hessian: Tensor | None = None) -> None:
        """Choose directions: Newton's if the Hessian is positive definite, else from the remembered pairs."""
        if hessian is None:
            q, newton = self._quasi_newton(index), torch.zeros_like(index, dtype=torch.bool)
        else:
            q, newton = _newton(self.gradient[index], hessian)
            rest = (~newton).nonzero()[:, 0]
            if len(rest):
                q[rest] = self._quasi_newton(index[rest])
        longest = LONGEST_STEP * self.scale
        self.direction[index] = -q * (longest / q.norm(dim=1, keepdim=True).clamp(min=longest))
        self.step[index], self.by_newton[index] = 1.0, newton

    def _quasi_newton(self, index: Tensor) -> Tensor:
        curvature = self.curvature[index] if self.use_curvature and self.curvature is not None else None
        order = (self.oldest[index, None] + torch.arange(self.memory, device=index.device)) % max(self.memory, 1)
        S, Y, rho = (pairs[index[:, None], order] for pairs in (self.S, self.Y, self.rho))
        return _two_loops(self.gradient[index], curvature, S, Y, rho, self.scale)

    def _remember(self, index: Tensor, s: Tensor, y: Tensor) -> None:
        """Store pairs of positive curvature in place of the oldest pairs of their rows."""
        inner = (s * y).sum(dim=1)
        good = inner > 1e-10 * s.norm(dim=1) * y.norm(dim=1)
        index = index[good]
        oldest = self.oldest[index]
        self.S[index, oldest], self.Y[index, oldest], self.rho[index, oldest] = s[good], y[good], 1.0 / inner[good]
        self.oldest[index] = (oldest + 1) % self.memory

    def _stationary(self, index: Tensor, norm: Tensor) -> Tensor:
        """Return whether gradients of this norm are within the tolerance."""
        if self.curvature is None:
            return norm * self.scale <= self.tol * self.unit
        return norm <= self.tol * self.scale * self.curvature[index].clamp(min=0)


def _two_loops(gradient: Tensor, curvature: Tensor | None, S: Tensor, Y: Tensor, rho: Tensor, scale: float) -> Tensor:
    """Return the approximate inverse Hessian times the gradient, by the two-loop recursion.

    The pairs of a row are ordered from the oldest to the last; a pair with rho 0 is ignored.
    """
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
    return q


def _newton(gradient: Tensor, hessian: Tensor) -> tuple[Tensor, Tensor]:
    """Return the inverse Hessian times the gradient, and in which rows the Hessian is positive definite."""
    factor, failed = torch.linalg.cholesky_ex(hessian)
    pivots = factor.diagonal(dim1=1, dim2=2).square().amin(dim=1)
    positive = (failed == 0) & (pivots > LEAST_PIVOT * hessian.diagonal(dim1=1, dim2=2).amax(dim=1))
    return torch.cholesky_solve(gradient[:, :, None], factor)[:, :, 0], positive


def _first_guess(gradient: Tensor, curvature: Tensor | None, Y: Tensor, rho: Tensor, scale: float) -> Tensor:
    """Return a scale of the inverse Hessian: from the curvature, else the last pair, else a modest step."""
    tiny = torch.finfo(gradient.dtype).tiny
    guess = 0.1 * scale / gradient.norm(dim=1).clamp(min=tiny)
    if rho.shape[1]:
        last = rho[:, -1] * Y[:, -1].square().sum(dim=1)
        guess = torch.where(last > 0, 1.0 / last.clamp(min=tiny), guess)
    if curvature is not None:
        guess = torch.where(curvature > 0, 1.0 / curvature.clamp(min=tiny), guess)
    # So large that the step length is the limit, in the units of the inputs, but without overflow.
    largest = torch.finfo(gradient.dtype).max
    return guess.clamp(max=min(largest, largest**0.25 * scale**2))
