"""The search for pre-images: points of the input space for projections onto components.

A pre-image of a projection Σ_i β_i φ_1(x_i) minimises the residual r(x) = ‖φ_1(x) - Σ_i β_i φ_1(x_i)‖²
(`Components.residual`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from drkm.files.rows import Rows, spread
from drkm.gram.cost import KEPT_NUMBERS, MANY_COMPONENTS
from drkm.inference.preimage.descent import Derivatives, Minima, minimise
from drkm.inference.preimage.residual import residual_of
from drkm.inference.preimage.ridge import RidgeMap
from drkm.inference.subspace import Components
from drkm.kernels import Kernel, Linear
from drkm.machine.devices import size_on
from drkm.machine.layout import slices
from drkm.validation import checks

METHODS = ("fixed-point", "gradient", "ridge")
#: default tolerance, maximum number of evaluations, and number of remembered steps
TOL, MAX_ITER, MEMORY = 1e-8, 1000, 4
#: rows processed together, and the maximum of numbers in such a batch (the search keeps about twenty times as many);
#: their kernel values are computed and used in smaller blocks
BATCH_ROWS, BATCH_NUMBERS = 4096, {"cpu": 1 << 17, "cuda": 1 << 25}
#: rows of the smallest batch whose weights β are kept between evaluations
KEPT_ROWS = 64
#: a start whose kernel sum is this small compared with that of the best training point carries no information
VANISHED = 1e-10
#: with at least this many dimensions per training point, and projections at least an eighth of the training points, a
#: basis of their span, in which the pre-images lie, pays off
WIDE, MANY = 4, 1 / 8
#: up to this many dimensions sums for a Hessian cost less than the steps they save
NEWTON_DIMENSIONS = 8


class Search(NamedTuple):
    """A function from (coordinates, starting points) to points, whether it uses the latter, and whether it is exact."""

    run: Callable[[Tensor, Tensor], Minima]
    iterative: bool
    exact: bool = False


@dataclass(frozen=True)
class PreImage:
    """Pre-images of projections in the input space.

    Attributes
    ----------
    points : Tensor of shape (m, d)
    residual : Tensor of shape (m,)
        Squared distance in feature space to the projection; never above that of the starting point (for "ridge", which
        has none, that of the one given).
    iterations : Tensor of shape (m,)
        Steps taken.
    converged : Tensor of shape (m,), bool
        Whether the tolerance was met.
    strange : Tensor of shape (m,), bool, or None
        Whether the point that was projected is unlike all training samples; None for projections of no point.
    """

    points: Tensor
    residual: Tensor
    iterations: Tensor
    converged: Tensor
    strange: Tensor | None = None


def preimage(
    components: Components,
    coordinates: Tensor,
    *,
    method: str = "fixed-point",
    start: Tensor | Rows | None = None,
    tol: float = TOL,
    max_iter: int = MAX_ITER,
    batch_size: int | None = None,
    memory: int = MEMORY,
    out: Tensor | None = None,
) -> PreImage:
    """Find the points whose images are nearest to projections.

    Parameters
    ----------
    components : Components
        The subspace.
    coordinates : Tensor of shape (m, c)
        The projections, as `Components.coordinates` gives them.
    method : {"fixed-point", "gradient", "ridge"}
        "fixed-point" (kernels of distances): x ← Σ_i β_i f'(e_i) x_i / Σ_i β_i f'(e_i), the step of Mika et al.,
        as the metric of a quasi-Newton method, which reaches the same points in fewer steps; up to 8 dimensions and
        with a twice differentiable kernel, Newton's method, which needs fewer still. "gradient"
        (kernels that can be differentiated): L-BFGS. "ridge": kernel ridge regression from projections to
        inputs, fitted on the training points.
    start : Tensor or Rows of shape (m, d), optional
        Starting points; by default the training point of smallest residual. The paper starts from the noisy point.
    tol : float
        Stop when a step is shorter than this fraction of the bandwidth σ.
    max_iter : int
        Maximum number of evaluations per point.
    batch_size : int, optional
        Number of points processed together; the result does not depend on it.
    memory : int
        Number of steps that the quasi-Newton direction remembers; 0 is the plain iteration with step control, even in
        few dimensions.
    out : Tensor of shape (m, d), optional
        Tensor to write the points to.
    """
    checks.number("tol", tol)
    checks.integer("max_iter", max_iter, 1)
    checks.integer("memory", memory, 0)
    in_span = start is None and _is_wide(components, len(coordinates))
    search = _search(components, method, tol, max_iter, memory, in_span)
    return preimage_by(search, components, coordinates, start=start, batch_size=batch_size, out=out)


def preimage_by(
    search: Search,
    components: Components,
    coordinates: Tensor,
    *,
    start: Tensor | Rows | None = None,
    batch_size: int | None = None,
    out: Tensor | None = None,
) -> PreImage:
    """Find pre-images as `preimage` does, by a search that was prepared for these components."""
    if batch_size is not None:
        checks.integer("batch_size", batch_size, 1)
    if coordinates.ndim != 2 or coordinates.shape[1] != components.c:
        got = tuple(coordinates.shape)
        raise ValueError(f"coordinates: expected {components.c} columns, one per component, got shape {got}")
    shape = (len(coordinates), components.X.shape[1])
    if start is not None and tuple(start.shape) != shape:
        raise ValueError(f"start: expected one point per projection, shape {shape}, got {tuple(start.shape)}")
    most = size_on(coordinates.device, BATCH_NUMBERS) // shape[1]
    if _keeps_weights(components):
        most = min(most, KEPT_NUMBERS // components.n)
    size = batch_size or max(1, min(BATCH_ROWS, most))
    found = PreImage(
        coordinates.new_empty(shape) if out is None else out,
        coordinates.new_empty(len(coordinates)),
        torch.empty(len(coordinates), dtype=torch.long, device=coordinates.device),
        torch.empty(len(coordinates), dtype=torch.bool, device=coordinates.device),
    )
    for rows in slices(len(coordinates), size):
        part = _one_batch(components, coordinates[rows], None if start is None else start[rows], search)
        for whole, piece in zip(vars(found).values(), vars(part).values(), strict=True):
            if piece is not None:
                whole[rows] = piece
    return found


def default_method(kernel: Kernel) -> str:
    """Return the method for pre-images that suits a kernel."""
    return "fixed-point" if kernel.with_preimages.is_isotropic else "gradient"


def prepared_search(components: Components, method: str) -> Search:
    """Prepare a search for pre-images, by default settings, for many small batches in sequence."""
    return _search(components, method, TOL, MAX_ITER, MEMORY, _is_wide(components, components.n))


def _search(
    components: Components, method: str, tol: float, max_iter: int, memory: int, in_span: bool = False
) -> Search:
    """Return the search for a method, for starts in the span of the training points, if the kernel supports it."""
    kernel = components.kernel
    if method not in METHODS:
        raise ValueError(f"method: unknown name {method!r}, allowed are {', '.join(METHODS)}")
    if kernel.is_given:
        raise TypeError("kernel: a precomputed Gram matrix has no input space, so there are no pre-images")
    if method == "ridge":
        ridge = RidgeMap.fit(components)
        return Search(lambda coordinates, start: ridge.search(coordinates), iterative=False)
    if method == "fixed-point" and not kernel.is_isotropic:
        raise TypeError(
            'method: "fixed-point" needs a kernel of distances (RBF, Laplacian, Matern), '
            f'got {type(kernel).__name__}; use method="gradient" or "ridge"'
        )
    if isinstance(kernel, Linear):
        return Search(lambda coordinates, start: _itself(components.projected_features(coordinates)), False, exact=True)
    return _descent(components, method, tol, max_iter, memory, in_span)


def _descent(components: Components, method: str, tol: float, max_iter: int, memory: int, in_span: bool) -> Search:
    """Return the search that minimises the distance in the feature space, from a start per point."""
    kernel = components.kernel
    newton = method == "fixed-point" and memory > 0 and _has_cheap_hessian(components)
    target = residual_of(components, second_order=newton, in_span=in_span)
    scale = kernel.bandwidth**0.5 if kernel.has_bandwidth else spread(components.X) or 1.0
    unit = _unit(components)

    # A power of 2, which is exact: norms of very small or large numbers would underflow or overflow.
    length = 2.0 ** round(math.log2(scale))

    def search(coordinates: Tensor, start: Tensor) -> Minima:
        fits = len(coordinates) * components.n <= KEPT_NUMBERS
        beta = components.weights(coordinates) if fits and _keeps_weights(components) else None

        def evaluate(x: Tensor, index: Tensor) -> Derivatives:
            rows = slice(None) if len(index) == len(coordinates) else index
            known = None if beta is None else beta[rows]
            return target.evaluate(length * x, coordinates[rows], known).in_units_of(length)

        begin = target.inside(start)
        found = minimise(
            evaluate,
            begin / length,
            scale=scale / length,
            unit=unit,
            tol=tol,
            max_iter=max_iter,
            memory=memory,
            use_curvature=method == "fixed-point",
        )
        points = target.outside(length * found.points, begin, start)
        if not kernel.is_kinked:
            return found._replace(points=points)
        # Close to a kink, a point has only half the digits of its residual.
        values = components.residual(points, coordinates) - components.norm2(coordinates)
        return found._replace(points=points, values=values)

    return Search(search, iterative=True)


def _keeps_weights(components: Components) -> bool:
    """Return whether β is kept between evaluations: reading it takes less time than sums over many components."""
    on_cpu = components.is_in_memory and not components.H.is_cuda
    pays = components.c >= MANY_COMPONENTS and components.n * KEPT_ROWS <= KEPT_NUMBERS
    return on_cpu and pays and components.kernel.is_pairwise


def _itself(projections: Tensor) -> Minima:
    """Return projections that are points themselves, as a search that takes one step."""
    ones = torch.ones(len(projections), dtype=torch.long, device=projections.device)
    return Minima(projections, projections.new_zeros(len(projections)), ones, ones.bool())


def _unit(components: Components) -> float:
    """Return a squared length in feature space by which residuals are measured."""
    # The mean that centring removes does not contribute to differences between features.
    common = 0.0 if components.kernel.is_isotropic else components.mean_norm2
    return max(float(components.diagonal.mean()) - common, torch.finfo(components.X.dtype).tiny)


def _has_cheap_hessian(components: Components) -> bool:
    """Return whether the kernel is twice differentiable (its spectrum has a variance) and there are few dimensions."""
    return components.kernel.is_smooth and components.X.shape[1] <= NEWTON_DIMENSIONS


def _is_wide(components: Components, m: int) -> bool:
    """Return whether m points have so many dimensions that coordinates in the span of the samples save time."""
    n, d = components.X.shape
    return components.is_in_memory and components.kernel.is_pairwise and d >= WIDE * n and m >= MANY * n


def _one_batch(components: Components, coordinates: Tensor, start: Tensor | None, search: Search) -> PreImage:
    index, default_residual = components.nearest_training_point(coordinates)
    default = components.X[index]
    if start is None:
        begin, begin_residual = default, default_residual
    else:
        begin, begin_residual = start.to(default), components.residual(start.to(default), coordinates)
        if components.kernel.is_isotropic:
            # S(x) = Σ β_i k(x, x_i) from the residual 1 - 2S(x) + ‖P‖².
            S, S_best = (0.5 * (1 + components.norm2(coordinates) - r) for r in (begin_residual, default_residual))
            vanished = (S.abs() <= VANISHED * S_best) & (default_residual <= begin_residual)
            begin = torch.where(vanished[:, None], default, begin)
    found = search.run(coordinates, begin)
    if search.exact:
        residual = found.values
    elif search.iterative:
        residual = (found.values + components.norm2(coordinates)).clamp(min=0)
    else:
        residual = components.residual(found.points, coordinates)
    # The learned map has no starting point of its own: only a given one is a bound for it.
    bounded = not search.exact and (search.iterative or start is not None)
    worse = ~(residual <= begin_residual) if bounded else residual.isnan()
    return PreImage(
        torch.where(worse[:, None], begin, found.points),
        torch.where(worse, begin_residual, residual),
        found.iterations,
        found.converged & torch.isfinite(residual),
    )
