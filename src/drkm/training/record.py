"""Builds the record of a fitted model from the point that a solver has found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.files.rows import AbsentRows, in_memory, largest_values
from drkm.fitted import FittedModel
from drkm.gram import Gram
from drkm.gram.features import CodedFeatures
from drkm.kernels import NystroemFeatures
from drkm.problem import axes as axes_of
from drkm.problem import stiefel
from drkm.problem.energy import Energy
from drkm.solvers import Result
from drkm.solvers.accuracy import EXACT, code_error
from drkm.training.plan import Plan


def record_of(
    energy: Energy, result: Result, plan: Plan, objectives: Sequence[float | None], at_bound: Sequence[int]
) -> FittedModel:
    """Return the fitted model with its multipliers and axes."""
    plan.tell("axes and multipliers")
    H = result.H
    # Once: with tiles that are not kept, a product forms all of K_1 again.
    first = energy.first.matmul(H[:, energy.slices[0]])
    G = energy.value_and_gradient(H, first).gradient
    multipliers = stiefel.multipliers(H, G)
    R = G - H @ multipliers.to(H.dtype)
    # Rounding alone changes the gradient by this much: the codes count as exact.
    exact = result.stationarity <= EXACT * torch.finfo(H.dtype).eps
    T = axes_of.products(energy, H, first)
    rotation = axes_of.rotations(energy, H, T, plan.axes)
    points = zip(energy.kernels, [energy.X, *energy.split(H)], strict=False)
    return FittedModel(
        kernels=energy.kernels,
        X=energy.X,
        sizes=energy.sizes,
        eta=energy.eta,
        lam=plan.lam,
        center=energy.center,
        axes=plan.axes,
        encoder=plan.encoder,
        strategy=plan.strategy,
        operator=energy.strategy.describe(),
        cost=energy.cost,
        n=energy.n,
        result=result,
        multipliers=multipliers,
        residual=_in_float32(R),
        code_error=0.0 if exact else code_error(H, R, multipliers),
        rotation=tuple(rotation),
        eigenvalues=tuple(axes_of.eigenvalue_estimates(T, rotation)),
        traces=layer_traces(energy, H),
        supports=layer_supports(H, energy.sizes),
        errors=tuple(kernel.error(below) for kernel, below in points),
        objectives=tuple(objectives),
        at_bound=tuple(at_bound),
        row_means=row_means(energy),
    )


def _in_float32(R: Tensor) -> Tensor:
    """Return the residual in float32, or zeros if it overflows there: samples then get codes to the tolerance."""
    stored = R.float()
    return torch.zeros_like(stored) if collectives.agreed(not stored.isfinite().all()) else stored


def without_samples(fitted: FittedModel, first: Gram) -> tuple[FittedModel, Gram]:
    """Drop the samples of a model whose pre-images need only landmarks; return it and its first Gram operator.

    Codes and pre-images depend only on features φ(x) in the span of the codes, s ≤ S + 1 numbers per sample, which a
    file holds. Samples that are smaller than that stay, because a file with samples needs no features. Models with
    other kernels are returned unchanged.
    """
    kernel = fitted.kernels[0]
    if not isinstance(kernel, NystroemFeatures):
        return fitted, first
    coded = first.coded(fitted.H)
    assert coded is not None
    eye = torch.eye(coded.basis.shape[1], dtype=coded.phi.dtype, device=coded.phi.device)
    features = CodedFeatures(coded.phi, eye, coded.lengths)
    n, d = fitted.X.shape
    s, m = coded.basis.shape[1], len(kernel.landmarks)
    # The features need their lengths too, and the factor of the landmarks.
    narrow = n * d <= n * (s + 1) + m * s
    keeps = narrow and fitted.is_quickly_formed and not fitted.strategy.hides_samples
    X = in_memory(fitted.X) if keeps else AbsentRows((n, d), largest_values(fitted.X))
    kernels = (kernel.in_basis(coded.basis), *fitted.kernels[1:])
    return replace(fitted, kernels=kernels, X=X, features=features), features


def with_all_samples(fitted: FittedModel) -> FittedModel:
    """Gather the samples and codes of all processes into a model of shared samples.

    Pairwise kernels need them for new points, and n·d numbers are few compared with n²/(2P).
    """
    begin, count = collectives.offset(), len(fitted.X)
    means = fitted.row_means
    return replace(
        fitted,
        X=collectives.gather(in_memory(fitted.X)),
        result=replace(fitted.result, H=collectives.gather(fitted.H)),
        residual=collectives.gather(fitted.residual),
        row_means=None if means is None else collectives.gather(means),
        own=slice(begin, begin + count),
    )


def layer_traces(energy: Energy, H: Tensor) -> tuple[float, ...]:
    """Return the trace of the Gram matrix of each layer."""
    own = [energy.gram(layer, H).diagonal().double().sum() for layer in range(len(energy.sizes))]
    # Centring leaves nothing of equal samples, up to rounding.
    return tuple(collectives.total(torch.stack(own)).clamp(min=0).tolist())


def layer_supports(H: Tensor, sizes: Sequence[int]) -> tuple[float, ...]:
    """Return the effective sample size of each layer, (Σ_i ‖h_i‖²)²/Σ_i ‖h_i‖⁴, which does not depend on the axes.

    It is n if all samples have codes of the same length, and m if m samples share the layer equally and the others have
    none.
    """
    squares = torch.stack([block.double().square().sum(dim=1) for block in H.split(list(sizes), dim=1)])
    lengths, fourth = collectives.total(torch.stack([squares.sum(dim=1), squares.square().sum(dim=1)])).tolist()
    return tuple(total**2 / power if power > 0 else 0.0 for total, power in zip(lengths, fourth, strict=True))


def row_means(energy: Energy) -> Tensor | None:
    """Return the means of the rows of K_1 if new points are centred with them; features are centred by their sum."""
    if not energy.center or energy.kernels[0].is_explicit:
        return None
    ones = torch.full((energy.rows, 1), 1.0 / energy.n, dtype=energy.dtype, device=energy.device)
    return energy.first_uncentered.matmul(ones)[:, 0].clone()
