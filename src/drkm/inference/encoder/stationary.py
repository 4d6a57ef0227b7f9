"""Codes of new points from the stationarity conditions of the fit.

At a stationary point of the energy G = HΛ, row by row. A new point x enters this condition with its own codes
z = (h¹, …, h^L) in place of a row, which makes z a stationary point of

    ψ(z) = -h¹·t/η_1 - Σ_{l≥2} Σ_j k_l(h^{l-1}, H_{l-1,j}) ⟨h^l, H_{l,j}⟩/η_l - ½ zᵀΛz,    t = H_1ᵀk_1(X, x).

`StationaryEncoder` minimises ψ by a saddle-free Newton method, starting from the codes of the nearest training sample.
Close to a training sample, plain Newton steps find the stationary point of the sample itself.

A fit ends at its tolerance, where G = HΛ + R with a small R: H is the exact stationary point of the energy minus ⟨R,
H⟩. The encoder therefore subtracts ⟨z, r⟩ from ψ, with r = R_i at sample i and almost 0 away from the samples. This
returns the codes of the samples for any tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.fitted import FittedModel
from drkm.inference.encoder.coupling import Coupling, couplings
from drkm.inference.encoder.encoding import UNSETTLED, Encoding
from drkm.inference.encoder.first_layer import first_layer, starting_points
from drkm.inference.first_gram import FirstGram
from drkm.solvers.accuracy import UNDETERMINED, undetermined_share

#: relative residual at which codes count as stationary
TOL = 1e-10
MAX_NEWTON = 100
#: relative residual and relative step length within which a point counts as close to a training sample
LOCAL, LOCAL_STEP, MAX_LOCAL = 0.05, 0.3, 20
SUFFICIENT = 1e-4
#: codes that are not stationary and this many times longer than the longest of the samples are of a ψ without a minimum
FARTHEST = 10


class LocalExpansion(NamedTuple):
    """ψ, its gradient and its Hessian at a batch of codes, and the size, never 0, of the terms of the gradient."""

    value: Tensor
    gradient: Tensor
    hessian: Tensor
    size: Tensor

    def of(self, rows: Tensor) -> LocalExpansion:
        """Return the expansion of some rows."""
        return LocalExpansion(*(part[rows] for part in self))


class StationaryEncoder:
    """Codes that satisfy the stationarity condition of the fit.

    Parameters
    ----------
    fitted : FittedModel
        Its H is a stationary point up to its residual R, and its multipliers are Λ.
    gram : FirstGram
        K_1, which is formed only if the first layer has explicit features.
    """

    def __init__(self, fitted: FittedModel, gram: FirstGram):
        self.H, self.R = starting_points(fitted.H), starting_points(fitted.residual.to(fitted.H))
        self.eta = fitted.eta
        self.slices = fitted.slices
        self.first = first_layer(fitted, gram)
        self.deep: Sequence[Coupling] = couplings(fitted.kernels, fitted.layer_codes(), fitted.center)
        dtype = fitted.H.dtype
        values, vectors = torch.linalg.eigh(-fitted.multipliers)
        scale = values.abs().max().clamp_min(torch.finfo(values.dtype).tiny)
        exact = len(fitted.sizes) == 1 and not fitted.center
        #: fraction of the largest multiplier up to which directions are undetermined, and the floor of Newton matrices
        self.lost = undetermined_share(fitted.result.stationarity, dtype) if exact else UNDETERMINED
        determined = values.abs() > self.lost * scale
        #: directions of z that stationarity does not determine, as columns
        self.undetermined = vectors[:, ~determined].to(dtype)
        kept = vectors[:, determined]
        self.M = (kept * values[determined] @ kept.T).to(dtype)
        #: the pseudoinverse of M, not from M itself, whose rounding would be inverted too
        self.inverse = (kept / values[determined] @ kept.T).to(dtype)
        self.scale = scale.item()
        #: length beyond which codes that are not stationary have diverged
        self.farthest = FARTHEST * collectives.agreed(fitted.H.norm(dim=1).max().item())

    def encode(self, rows: Tensor, ambiguity: bool = False) -> Encoding:
        """Return the codes of points in the format of `drkm.gram.Cross`."""
        t = self.first.scores(rows)
        nearest = self.first.nearest(rows, 2 if ambiguity else 1)
        pull = self._pull(t, nearest[:, 0])
        codes, residual, unbounded = self._solve(pull, self.H[nearest[:, 0]])
        if not ambiguity:
            return Encoding(codes, residual, None, unbounded=unbounded)
        other, *_ = self._solve(pull, self.H[nearest[:, -1]])
        apart = (other - codes).norm(dim=1) > 1e-4 * codes.norm(dim=1).clamp_min(1e-300)
        return Encoding(codes, residual, apart, unbounded=unbounded)

    def scores_of(self, codes: Tensor) -> Tensor:
        """Return t = H_1ᵀk_1(X, x) of points with these codes, by stationarity in the first layer."""
        first = self.slices[0]
        gradient = (codes @ self.M)[:, first]
        if self.deep:
            below, _ = self.deep[0].gradient(codes[:, first], codes[:, self.slices[1]])
            gradient = gradient - below / self.eta[1]
        return self.eta[0] * gradient

    def code_matrix(self) -> Tensor:
        """Return C of z = tC for one layer, where t/η = Mz; the residual R of the fit is ignored."""
        return self.inverse / self.eta[0]

    def _pull(self, t: Tensor, nearest: Tensor) -> Tensor:
        """Return f of the linear term -⟨f, z⟩ of ψ for each row: t/η_1 in the first layer, and r in all of them.

        r is R_i at the scores of the nearest sample i, and almost 0 where the scores differ by more than R.
        """
        first, R = self.slices[0], self.R[nearest]
        away = (t - self.scores_of(self.H[nearest])) / self.eta[0] + R[:, first]
        size, distance = (part.norm(dim=1, keepdim=True) for part in (R, away))
        pull = R / (1 + (distance / size.clamp_min(torch.finfo(t.dtype).tiny)) ** 2)
        pull[:, first] += t / self.eta[0]
        return pull

    def _solve(self, pull: Tensor, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return a stationary point of ψ for each row, its relative residual, and whether there is none.

        Close to a training sample the result is the sample's own stationary point, whether or not ψ has a minimum
        there, found by plain Newton steps. Everywhere else ψ is minimised. If the fit is a saddle point of J, so that Λ
        has positive eigenvalues, ψ may have no minimum: rows that diverge keep the codes that they started from.

        No step moves directions that stationarity does not determine. They are set to zero in the end: in the
        beginning, it would move a training sample off its stationary point, and Newton's method to another one.
        """
        start, null = z, self.undetermined
        tol = max(TOL, 20 * torch.finfo(z.dtype).eps)
        there = self._expand(pull, start)
        z, residual = self._follow(pull, start, there, tol)
        far = _where(residual > tol)
        if len(far):
            z[far], residual[far] = self._minimise(pull[far], start[far], there.of(far), tol)
        lost = ~(residual <= UNSETTLED) & ~(z.norm(dim=1) <= self.farthest)
        if len(rows := _where(lost)):
            z[rows], residual[rows] = start[rows], there.gradient[rows].norm(dim=1) / there.size[rows]
        # Where kernel values of a point overflow, no codes are known to be stationary.
        return z - (z @ null) @ null.T, residual.nan_to_num(nan=torch.inf, posinf=torch.inf), lost

    def _follow(self, pull: Tensor, start: Tensor, there: LocalExpansion, tol: float) -> tuple[Tensor, Tensor]:
        """Take plain Newton steps while they are short and halve the residual or better; others get residual inf."""
        z, size = start.clone(), start.norm(dim=1)
        residual = torch.full_like(z[:, 0], torch.inf)
        last = torch.full_like(residual, 2 * LOCAL)
        active = torch.arange(len(z), device=z.device)
        for step in range(MAX_LOCAL):
            _, gradient, hessian, parts = self._expand(pull[active], z[active]) if step else there
            relative = gradient.norm(dim=1) / parts
            residual[active] = torch.where(relative <= tol, relative, torch.inf)
            busy = _where((relative > tol) & (relative <= 0.5 * last[active]))
            if not len(busy):
                break
            active = active[busy]
            last[active] = relative[busy]
            moved = z[active] + self._newton_step(gradient[busy], hessian[busy], torch.sign)
            short = _where((moved - start[active]).norm(dim=1) <= LOCAL_STEP * size[active])
            if not len(short):
                break
            active = active[short]
            z[active] = moved[short]
        return z, residual

    def _minimise(self, pull: Tensor, z: Tensor, there: LocalExpansion, tol: float) -> tuple[Tensor, Tensor]:
        """Minimise ψ for each row by Newton's method with absolute eigenvalues and backtracking."""
        z = z.clone()
        residual = torch.full_like(z[:, 0], torch.inf)
        active = torch.arange(len(z), device=z.device)
        for number in range(MAX_NEWTON + 1):
            there = self._expand(pull[active], z[active]) if number else there
            relative = there.gradient.norm(dim=1) / there.size
            residual[active] = relative
            busy = _where(relative > tol)
            if not len(busy) or number == MAX_NEWTON:
                break
            active, here = active[busy], there.of(busy)
            step = self._newton_step(here.gradient, here.hessian, torch.ones_like)
            moved = self._line_search(pull[active], z[active], step, here.value, here.gradient)
            going = _where((moved != z[active]).any(dim=1))
            z[active] = moved
            active = active[going]
            if not len(active):
                break
        return z, residual

    def _newton_step(self, gradient: Tensor, hessian: Tensor, sign: Callable[[Tensor], Tensor]) -> Tensor:
        """Return -|Hess|⁻¹ times the gradient with the given signs: those of the eigenvalues, or all positive.

        If all eigenvalues are positive, as usual, a Cholesky factorisation is used, which takes a fraction of the time.
        """
        null = self.undetermined
        factor, failed = torch.linalg.cholesky_ex(hessian + self.scale * (null @ null.T))
        pivots = factor.diagonal(dim1=1, dim2=2).square().amin(dim=1)
        step = -torch.cholesky_solve(gradient[:, :, None], factor)[:, :, 0]
        doubtful = _where((failed > 0) | ~(pivots > self.lost * self.scale))
        if len(doubtful):
            values, vectors = torch.linalg.eigh(hessian[doubtful])
            size = sign(values) * values.abs().clamp_min(self.lost * self.scale)
            coefficients = (vectors.mT @ gradient[doubtful, :, None])[:, :, 0] / size
            step[doubtful] = -(vectors @ coefficients[:, :, None])[:, :, 0]
        return step - (step @ null) @ null.T

    def _line_search(self, pull: Tensor, z: Tensor, step: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
        slope = (step * gradient).sum(dim=1)
        slack = 8 * torch.finfo(z.dtype).eps * (value.abs() + slope.abs())
        length = torch.ones_like(value)
        moved = z.clone()
        trying = torch.arange(len(z), device=z.device)
        for _ in range(40):
            trial = z[trying] + length[trying, None] * step[trying]
            good = self._value(pull[trying], trial) <= (
                value[trying] + SUFFICIENT * length[trying] * slope[trying] + slack[trying]
            )
            moved[trying] = torch.where(good[:, None], trial, moved[trying])
            trying = trying[_where(~good)]
            if not len(trying):
                break
            length[trying] *= 0.5
        return moved

    def _value(self, pull: Tensor, z: Tensor) -> Tensor:
        """Return only ψ, as in `_expand`."""
        value = 0.5 * ((z @ self.M) * z).sum(dim=1) - (z * pull).sum(dim=1)
        for layer, coupling in enumerate(self.deep, start=1):
            below, own = z[:, self.slices[layer - 1]], z[:, self.slices[layer]]
            value = value - coupling.value(below, own) / self.eta[layer]
        return value

    def _expand(self, pull: Tensor, z: Tensor) -> LocalExpansion:
        """Return ψ to second order.

            ψ(z) = -⟨f, z⟩ - Σ_{l≥2} Σ_j k_l(h^{l-1}, H_{l-1,j}) ⟨h^l, H_{l,j}⟩/η_l - ½ zᵀΛz

        f (`pull`) is t/η_1 in the first layer, t = H_1ᵀk_1(X, x), plus r in all layers: the residual R_i of the fit at
        training sample i, and almost 0 elsewhere. The gradient of ψ is one row of G - HΛ - R with this point's own
        codes z in it. ψ replaces equations (10) and (11) of the paper, which `ProjectionEncoder` has.
        """
        quadratic, linear = z @ self.M, -pull
        value = 0.5 * (quadratic * z).sum(dim=1) - (z * pull).sum(dim=1)
        hessian = self.M.expand(len(z), -1, -1).clone()
        for layer, coupling in enumerate(self.deep, start=1):
            below, own, eta = self.slices[layer - 1], self.slices[layer], self.eta[layer]
            part = coupling.expand(z[:, below], z[:, own])
            value -= coupling.value_from(part.own, z[:, own]) / eta
            linear[:, below] -= part.below / eta
            linear[:, own] -= part.own / eta
            hessian[:, below, below] -= part.second / eta
            hessian[:, below, own] -= part.mixed / eta
            hessian[:, own, below] -= part.mixed.mT / eta
        null, gradient = self.undetermined, quadratic + linear
        size = (quadratic.norm(dim=1) + linear.norm(dim=1)).clamp_min(torch.finfo(z.dtype).tiny)
        return LocalExpansion(value, gradient - (gradient @ null) @ null.T, hessian, size)


def _where(rows: Tensor) -> Tensor:
    """Return the indices of true rows; computed once, because each such query synchronises with a GPU."""
    return rows.nonzero()[:, 0]
