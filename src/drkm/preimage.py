"""From components back to points: projections in the first feature space and their pre-images.

A component is a vector of coefficients over the training points, of whatever layer: column c of H_C stands
for v_c = Σ_i H_ic φ_1(x_i). The projection of φ_1(x) on the span of a set of components is Σ_i β_i φ_1(x_i)
with β = H_C (H_Cᵀ K_1 H_C)⁺ H_Cᵀ k_1(X, x). Components of different layers are not orthogonal in this space,
hence the middle factor; the paper leaves it out (its β is H_C H_Cᵀ k_1(X, x)): the option `normalized=False`.
A pre-image minimises the residual r(x) = ‖φ_1(x) - Σ_i β_i φ_1(x_i)‖² (the paper's equation for r).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from drkm import reduction
from drkm._descent import Evaluation, Minima, minimise
from drkm._residual import residual_of
from drkm.energy import Energy
from drkm.gram import Centered, FeatureGram, Gram, StoredGram, Strategy, SweptGram
from drkm.gram.features import feature_sums
from drkm.gram.memory import in_memory
from drkm.gram.sweep import blocks
from drkm.kernels import DotProduct, Explicit, Isotropic, Kernel, NystroemFeatures, Pairwise, Precomputed
from drkm.rows import Rows

METHODS = ("fixed-point", "gradient", "ridge")
#: rows handled together, as long as they are so many numbers at most (the search keeps about twenty times as many);
#: their kernel values are formed and used in smaller blocks
BATCH_ROWS, BATCH_NUMBERS = 4096, {"cpu": 1 << 22, "cuda": 1 << 25}
#: a start whose kernel sum is this small beside that of the best training point carries no information
VANISHED = 1e-10
#: from so many dimensions a training point, and projections an eighth of the training points, the search pays for a
#: basis of their span, in which the points it finds lie
WIDE, MANY = 4, 1 / 8
#: up to so many dimensions sums for a Hessian cost less than the steps it saves
NEWTON_DIMENSIONS = 8


class Components:
    """A set of components as a subspace of the first feature space.

    Parameters
    ----------
    kernel : Kernel
        Kernel of the first layer, with numbers for parameters.
    X : Tensor of shape (n, d)
        Training points (the Gram matrix itself for a precomputed kernel).
    H : Tensor of shape (n, c)
        One component a column; their order and linear dependence do not matter to the projection.
    center : bool
        The components and what is projected are centred in feature space; the mean is added back.
    normalized : bool
        False gives the paper's β, without the factor (HᵀKH)⁺.
    gram : Gram or Strategy, optional
        The operator of K_1, or how to form it; by default it is applied without being stored.
    mean_weights : Tensor of shape (n,), optional
        With `center`: coefficients of the mean that is added back; by default all points count alike, and the
        coefficients H are centred here. Given, H is taken as centred.
    reader : Tensor of shape (D, c), optional
        What turns the rows given to `scores` into inner products with the components: H for kernel values with the
        points (the default), H_CᵀΦ, transposed, for features.

    Attributes
    ----------
    H : Tensor of shape (n, c)
        The coefficients (centred if asked).
    KH : Tensor of shape (n, c)
        K_1 times these.
    M : Tensor of shape (c, c)
        HᵀK_1H, the inner products of the components.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Tensor,
        H: Tensor,
        *,
        center: bool = False,
        normalized: bool = True,
        gram: Gram | Strategy | None = None,
        mean_weights: Tensor | None = None,
        reader: Tensor | None = None,
    ):
        if H.ndim != 2 or len(H) != len(X):
            raise ValueError(
                f"H: expected one row of coefficients for each of {len(X)} points, got shape {tuple(H.shape)}"
            )
        if H.shape[1] == 0:
            raise ValueError("components: expected at least one component, got none")
        self.kernel, self.X = kernel, X
        self.center, self.normalized = center, normalized
        self.n, self.c = H.shape
        self.H = H - H.mean(dim=0) if center and mean_weights is None else H
        self.mean_weights = H.new_full((self.n,), 1.0 / self.n) if mean_weights is None else mean_weights
        self._reader = self.H if reader is None else reader
        operator = self._operator = _operator(kernel, X, gram)
        self._features: Tensor | None = None
        self.diagonal = operator.diagonal()
        self.KH, self.mean_row = self.H, None
        if center:
            block = torch.cat([self.H, self.mean_weights[:, None]], dim=1)
            product = operator.matmul(block)
            self.KH, self.mean_row = product[:, :-1].contiguous(), product[:, -1].contiguous()
            self.mean_scores = self.H.T @ self.mean_row
            self.mean_norm2 = float(self.mean_row @ self.mean_weights)
        else:
            self.KH = operator.matmul(self.H.contiguous())
            self.mean_scores, self.mean_norm2 = H.new_zeros(self.c), 0.0
        M = (self.H.T.double() @ self.KH.double()).to(H)
        self.M = 0.5 * (M + M.T)
        self._inverse = _pseudo_inverse(self.M, self.H) if normalized else torch.eye(self.c).to(H)

    def scores(self, k_rows: Tensor) -> Tensor:
        """Return t = H_Cᵀk (m×c) from raw kernel rows k_1(x*, X) (m×n), centred if the components are.

        With a `reader` of features, from the rows φ_1(x*).
        """
        width = len(self._reader)
        if k_rows.ndim != 2 or k_rows.shape[1] != width:
            raise ValueError(f"k_rows: expected {width} columns, one a training point, got {tuple(k_rows.shape)}")
        return k_rows @ self._reader - self.mean_scores

    def coordinates(self, k_rows: Tensor) -> Tensor:
        """Return the coefficients a (m×c) of the projections Σ_c a_c v_c, from raw kernel rows k_1(x*, X)."""
        return self.coordinates_from_scores(self.scores(k_rows))

    def coordinates_from_scores(self, scores: Tensor) -> Tensor:
        """Return the coefficients a (m×c) from t = H_Cᵀk̃, a point's inner products with the components."""
        if scores.ndim != 2 or scores.shape[1] != self.c:
            raise ValueError(f"scores: expected {self.c} columns, one a component, got {tuple(scores.shape)}")
        return scores @ self._inverse

    def training_coordinates(self) -> Tensor:
        """Return the coordinates of the training points (n×c)."""
        return self.coordinates_from_scores(self.KH - self.mean_scores)

    def weights(self, coordinates: Tensor) -> Tensor:
        """Return β (m×n), whose Σ_i β_i φ_1(x_i) is the projection with the mean added back."""
        beta = coordinates @ self.H.T
        return beta + self.mean_weights if self.center else beta

    def norm2(self, coordinates: Tensor) -> Tensor:
        """Return the squared norm of each projection, the mean included."""
        inner = (coordinates @ self.M + 2 * self.mean_scores) * coordinates
        return inner.sum(dim=1) + self.mean_norm2

    def residual(self, points: Tensor, coordinates: Tensor) -> Tensor:
        """Return ‖φ_1(x) - Σ_i β_i φ_1(x_i)‖² of each point against the projection in the same row."""
        if isinstance(self.kernel, Explicit):
            with torch.no_grad():
                return (self.kernel.features(points) - self.projected_features(coordinates)).square().sum(dim=1)
        cross = points.new_empty(len(points))
        for rows in blocks(len(points), self.n, self.X):
            k = self.kernel(points[rows], self.X)
            cross[rows] = (k * self.weights(coordinates[rows])).sum(dim=1)
        return (self.kernel.diagonal(points) - 2 * cross + self.norm2(coordinates)).clamp(min=0)

    def projected_features(self, coordinates: Tensor) -> Tensor:
        """Return the projections themselves (m×D), for a kernel of explicit features."""
        if self._features is None:
            assert isinstance(self.kernel, Explicit)
            block = torch.cat([self.H, self.mean_weights[:, None]], dim=1)
            self._features = feature_sums(self._operator, self.kernel, self.X, block).T
        projection = coordinates @ self._features[:-1]
        return projection + self._features[-1] if self.center else projection

    def nearest_training_point(self, coordinates: Tensor) -> tuple[Tensor, Tensor]:
        """Return the training point of smallest residual and that residual, for each projection."""
        index = torch.empty(len(coordinates), dtype=torch.long, device=coordinates.device)
        best = coordinates.new_empty(len(coordinates))
        base = self.diagonal if self.mean_row is None else self.diagonal - 2 * self.mean_row
        # The constants ride along as one more column: adding a broadcast vector costs more than the product.
        table = torch.cat([-2 * self.KH.T, base[None]])
        augmented = torch.cat([coordinates, torch.ones_like(coordinates[:, :1])], dim=1)
        for rows in blocks(len(coordinates), self.n, self.X):
            best[rows], index[rows] = (augmented[rows] @ table).min(dim=1)
        return index, (best + self.norm2(coordinates)).clamp(min=0)


def component_sums(energy: Energy, H: Tensor) -> Tensor | None:
    """Return ΦᵀH of the first layer, centred if the features are, with the mean feature as a last column.

    It is all that pre-images need of the samples; None for kernels without explicit features.
    """
    kernel = energy.kernels[0]
    if not isinstance(kernel, Explicit):
        return None
    block = torch.cat([_centered(energy, H), torch.full_like(H[:, :1], 1.0 / energy.n)], dim=1)
    return feature_sums(energy.first_uncentered, kernel, energy.X, block)


def _centered(energy: Energy, H: Tensor) -> Tensor:
    return H - reduction.mean(H) if energy.center else H


def components_of(energy: Energy, H: Tensor, sums: Tensor | None, *, normalized: bool = True) -> Components:
    """Return components of a trained model, which take new points as `drkm.gram.Cross` gives them.

    `sums` are the columns of `component_sums` that belong to H. The feature space of a Nyström approximation is spanned
    by the landmarks in that of the kernel itself: components become coefficients over these, and pre-images are found
    with the kernel itself, without the samples.
    """
    kernel, gram, center = energy.kernels[0], energy.first_uncentered, energy.center
    if sums is None:
        return Components(kernel, in_memory(energy.X), H, center=center, normalized=normalized, gram=gram)
    reader = sums[:, :-1].contiguous()
    if isinstance(kernel, NystroemFeatures):
        on_landmarks = kernel.factor @ sums
        return Components(
            kernel.kernel,
            kernel.landmarks,
            on_landmarks[:, :-1].contiguous(),
            center=center,
            normalized=normalized,
            mean_weights=on_landmarks[:, -1].contiguous(),
            reader=reader,
        )
    if energy.rows < energy.n:
        raise ValueError(
            "gram: pre-images of samples that processes share need Nyström features in the first layer, "
            f"got {kernel.describe()}"
        )
    return Components(
        kernel,
        in_memory(energy.X),
        _centered(energy, H),
        center=center,
        normalized=normalized,
        gram=gram,
        mean_weights=torch.full_like(H[:, 0], 1.0 / energy.n),
        reader=reader,
    )


@dataclass(frozen=True)
class PreImage:
    """Points of the input space that stand for projections.

    Attributes
    ----------
    points : Tensor of shape (m, d)
    residual : Tensor of shape (m,)
        Squared distance in feature space to the projection; never above that of the starting point (of the
        one given, for "ridge", which has none of its own).
    iterations : Tensor of shape (m,)
        Steps taken.
    converged : Tensor of shape (m,), bool
        Whether the tolerance was met.
    """

    points: Tensor
    residual: Tensor
    iterations: Tensor
    converged: Tensor


def preimage(
    components: Components,
    coordinates: Tensor,
    *,
    method: str = "fixed-point",
    start: Tensor | Rows | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    batch_size: int | None = None,
    memory: int = 4,
    out: Tensor | None = None,
) -> PreImage:
    """Return the points whose images are nearest to projections.

    Parameters
    ----------
    components : Components
        The subspace.
    coordinates : Tensor of shape (m, c)
        The projections, as `Components.coordinates` gives them.
    method : {"fixed-point", "gradient", "ridge"}
        "fixed-point" (kernels of distances): x ← Σ β_i f'(e_i) x_i / Σ β_i f'(e_i), the step of Mika et al.,
        as the metric of a quasi-Newton method, which reaches the same points in fewer steps; up to 8 dimensions and
        with a twice differentiable kernel, Newton's method, which needs fewer still. "gradient"
        (kernels that can be differentiated): L-BFGS. "ridge": kernel ridge regression from projections to
        inputs, fitted on the training points.
    start : Tensor or Rows of shape (m, d), optional
        Where to begin; by default the training point of smallest residual. The paper takes the noisy point.
    tol : float
        Stop when a step is shorter than this fraction of the bandwidth σ.
    max_iter : int
        Largest number of evaluations a point.
    batch_size : int, optional
        Points handled together; the result does not depend on it.
    memory : int
        Steps the quasi-Newton direction remembers; 0 is the plain iteration, with step control, also in few dimensions.
    out : Tensor of shape (m, d), optional
        Where to write the points.
    """
    in_span = start is None and _is_wide(components, len(coordinates))
    search = _search(components, method, tol, max_iter, memory, in_span)
    if coordinates.ndim != 2 or coordinates.shape[1] != components.c:
        got = tuple(coordinates.shape)
        raise ValueError(f"coordinates: expected {components.c} columns, one a component, got shape {got}")
    shape = (len(coordinates), components.X.shape[1])
    if start is not None and tuple(start.shape) != shape:
        raise ValueError(f"start: expected one point a projection, shape {shape}, got {tuple(start.shape)}")
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"batch_size: expected at least 1, got {batch_size}")
    most = BATCH_NUMBERS["cuda" if components.X.is_cuda else "cpu"] // shape[1]
    size = batch_size or max(1, min(BATCH_ROWS, most))
    found = PreImage(
        coordinates.new_empty(shape) if out is None else out,
        coordinates.new_empty(len(coordinates)),
        torch.empty(len(coordinates), dtype=torch.long, device=coordinates.device),
        torch.empty(len(coordinates), dtype=torch.bool, device=coordinates.device),
    )
    for begin in range(0, len(coordinates), size):
        rows = slice(begin, begin + size)
        part = _one_batch(components, coordinates[rows], None if start is None else start[rows], search)
        for whole, piece in zip(vars(found).values(), vars(part).values(), strict=True):
            whole[rows] = piece
    return found


class Search(NamedTuple):
    """A function from (coordinates, starting points) to points, and whether it uses the latter."""

    run: Callable[[Tensor, Tensor], Minima]
    iterative: bool


def _search(
    components: Components, method: str, tol: float, max_iter: int, memory: int, in_span: bool = False
) -> Search:
    """Return how to find points (from starts in the span of the training points), if the kernel allows it."""
    kernel = components.kernel
    name = type(kernel).__name__
    if method not in METHODS:
        raise ValueError(f"method: unknown name {method!r}, allowed are {', '.join(METHODS)}")
    if not tol > 0:
        raise ValueError(f"tol: expected a positive number, got {tol}")
    if isinstance(kernel, Precomputed):
        raise TypeError("kernel: a precomputed Gram matrix has no input space, so there are no pre-images")
    if method == "ridge":
        from drkm._ridge import RidgeMap

        ridge = RidgeMap.fit(components)
        return Search(lambda coordinates, start: ridge.search(coordinates), iterative=False)
    if method == "fixed-point" and not isinstance(kernel, Isotropic):
        raise TypeError(
            'method: "fixed-point" needs a kernel of distances (RBF, Laplacian, Matern), '
            f'got {name}; use method="gradient" or "ridge"'
        )
    newton = method == "fixed-point" and memory > 0 and _has_cheap_hessian(components)
    target = residual_of(components, second_order=newton, in_span=in_span)
    rms = components.X.var(dim=0, correction=0).sum().sqrt().item()
    scale = float(kernel.sigma2) ** 0.5 if kernel.has_bandwidth else rms or 1.0  # type: ignore[attr-defined]
    kinked = isinstance(kernel, Isotropic) and kernel.spectral_degrees <= 1
    unit = max(float(components.diagonal.mean()), torch.finfo(components.X.dtype).tiny)

    def search(coordinates: Tensor, start: Tensor) -> Minima:
        def evaluate(x: Tensor, index: Tensor) -> Evaluation:
            return target.evaluate(x, coordinates[index])

        begin = target.inside(start)
        found = minimise(
            evaluate,
            begin,
            scale=scale,
            unit=unit,
            tol=tol,
            max_iter=max_iter,
            memory=memory,
            use_curvature=method == "fixed-point",
        )
        points = target.outside(found.points, begin, start)
        if not kinked:
            return found._replace(points=points)
        # The last digit of a point next to a kink is half of those of its residual.
        values = components.residual(points, coordinates) - components.norm2(coordinates)
        return found._replace(points=points, values=values)

    return Search(search, iterative=True)


def _has_cheap_hessian(components: Components) -> bool:
    """Return whether the kernel is twice differentiable (its spectrum has a variance) and dimensions are few."""
    kernel = components.kernel
    smooth = isinstance(kernel, Isotropic) and kernel.spectral_degrees > 2
    return smooth and components.X.shape[1] <= NEWTON_DIMENSIONS


def _is_wide(components: Components, m: int) -> bool:
    """Return whether m points have so many dimensions that coordinates in the span of the training points save time."""
    n, d = components.X.shape
    return isinstance(components.kernel, Isotropic | DotProduct) and d >= WIDE * n and m >= MANY * n


def _one_batch(components: Components, coordinates: Tensor, start: Tensor | None, search: Search) -> PreImage:
    index, default_residual = components.nearest_training_point(coordinates)
    default = components.X[index]
    if start is None:
        begin, begin_residual = default, default_residual
    else:
        begin, begin_residual = start.to(default), components.residual(start.to(default), coordinates)
        if isinstance(components.kernel, Isotropic):
            # S(x) = Σ β_i k(x, x_i) from the residual 1 - 2S(x) + ‖P‖².
            S, S_best = (0.5 * (1 + components.norm2(coordinates) - r) for r in (begin_residual, default_residual))
            vanished = (S.abs() <= VANISHED * S_best) & (default_residual <= begin_residual)
            begin = torch.where(vanished[:, None], default, begin)
    found = search.run(coordinates, begin)
    if search.iterative:
        residual = (found.values + components.norm2(coordinates)).clamp(min=0)
    else:
        residual = components.residual(found.points, coordinates)
    # The learned map has no starting point of its own: only one that the caller gives is a bound for it.
    worse = ~(residual <= begin_residual) if search.iterative or start is not None else residual.isnan()
    return PreImage(
        torch.where(worse[:, None], begin, found.points),
        torch.where(worse, begin_residual, residual),
        found.iterations,
        found.converged & torch.isfinite(residual),
    )


def _operator(kernel: Kernel, X: Tensor, gram: Gram | Strategy | None) -> Gram:
    if isinstance(gram, Centered):
        return gram.gram
    if isinstance(gram, Gram):
        return gram
    if isinstance(gram, Strategy):
        return gram.fixed(kernel, X)
    if isinstance(kernel, Pairwise):
        return SweptGram(kernel, X - X.mean(dim=0) if kernel.is_isotropic else X)
    if isinstance(kernel, Explicit):
        return FeatureGram(kernel, X)
    return StoredGram(kernel(X, X))


def _pseudo_inverse(M: Tensor, H: Tensor) -> Tensor:
    """Return M⁺, cut after scaling the columns of H to length 1, so that their lengths do not matter."""
    norm = H.double().norm(dim=0)
    scale = torch.where(norm > 0, 1.0 / norm, torch.zeros_like(norm))
    values, vectors = torch.linalg.eigh(M.double() * scale[:, None] * scale)
    keep = values > 100 * torch.finfo(M.dtype).eps * values[-1].clamp(min=0)
    inverse = torch.where(keep, 1.0 / torch.where(keep, values, 1.0), 0.0)
    vectors = scale[:, None] * vectors
    return ((vectors * inverse) @ vectors.T).to(M)
