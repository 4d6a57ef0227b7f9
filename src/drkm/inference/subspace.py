"""Components as a subspace of the first feature space, and projections onto it.

A component of any layer is a vector of coefficients over the training points: column c of H_C stands for
v_c = Σ_i H_ic φ_1(x_i). The projection of φ_1(x) onto the span of a set of components is Σ_i β_i φ_1(x_i) with
β = H_C (H_Cᵀ K_1 H_C)⁺ H_Cᵀ k_1(X, x) (`Components.weights`).
"""

from __future__ import annotations

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.files.rows import Rows, in_memory
from drkm.fitted import FittedModel
from drkm.gram import Cross, Dense, Gram
from drkm.gram.base import center as centered
from drkm.gram.features import feature_sums
from drkm.gram.sweep import blocks
from drkm.inference.first_gram import FirstGram
from drkm.kernels import Kernel, NystroemFeatures
from drkm.problem.shrinkage import Shrinkage

#: kernel sums that are less than this many rounding errors of 1 differ between training points by rounding alone
VANISHED = 16


class NothingLeft(ValueError):
    """Weights of components that are all zero."""


class Components:
    """A set of components as a subspace of the first feature space.

    Parameters
    ----------
    kernel : Kernel
        Kernel of the first layer, with all parameters as numbers.
    X : Tensor or Rows, of shape (n, d)
        Training points (the Gram matrix itself for a precomputed kernel). If they are in a file and `gram` is given,
        they are read a few at a time.
    H : Tensor of shape (n, c)
        One component per column; their order and linear dependence do not matter to the projection.
    center : bool
        Whether the components and the projected points are centred in feature space; the mean is added back.
    normalized : bool
        False gives the paper's β, without the factor (HᵀKH)⁺.
    gram : Gram, optional
        The operator of K_1; by default one that does not store it.
    mean_weights : Tensor of shape (n,), optional
        With `center`: coefficients of the mean that is added back. By default all points have the same weight, and the
        coefficients H are centred here; if given, H must be centred already.
    reader : Tensor of shape (D, c), optional
        Matrix that turns the rows passed to `scores` into inner products with the components: H for kernel values with
        the points (the default), the transpose of H_CᵀΦ for features.
    shrink : Shrinkage, optional
        Weight the directions of the subspace by their Ritz values instead of keeping all unchanged.
    lengths : Tensor of shape (c, c), optional
        HᵀH of the coefficients over the samples, to which Ritz values are relative; by default that of H.

    Attributes
    ----------
    H : Tensor of shape (n, c)
        The coefficients (centred if asked).
    KH : Tensor of shape (n, c)
        K_1 times the coefficients.
    M : Tensor of shape (c, c)
        HᵀK_1H, the inner products of the components.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Tensor | Rows,
        H: Tensor,
        *,
        center: bool = False,
        normalized: bool = True,
        gram: Gram | None = None,
        mean_weights: Tensor | None = None,
        reader: Tensor | None = None,
        shrink: Shrinkage | None = None,
        lengths: Tensor | None = None,
    ):
        if H.ndim != 2 or len(H) != len(X):
            raise ValueError(
                f"H: expected one row of coefficients for each of {len(X)} points, got shape {tuple(H.shape)}"
            )
        if H.shape[1] == 0:
            raise ValueError("components: expected at least one component, got none")
        self.kernel, self.X = kernel, X
        self.center = center
        self.n, self.c = H.shape
        self.H = H - H.mean(dim=0) if center and mean_weights is None else H
        self.mean_weights = H.new_full((self.n,), 1.0 / self.n) if mean_weights is None else mean_weights
        self._reader = self.H if reader is None else reader
        operator = self._operator = _operator(kernel, in_memory(X)) if gram is None else gram
        self._features: Tensor | None = None
        # Computed values of k(x, x) = 1 have rounding errors, by which far samples would look nearest to themselves.
        self.diagonal = H.new_ones(self.n) if kernel.is_isotropic else operator.diagonal()
        self.mean_row: Tensor | None = None
        self.mean_scores, self.mean_norm2 = H.new_zeros(self.c), 0.0
        self._multiply(operator)
        self._invert(shrink, normalized, lengths)

    def _multiply(self, operator: Gram) -> None:
        """Set the products of K_1 with the coefficients and, with `center`, with those of the mean."""
        if not self.center:
            self.KH = operator.matmul(self.H.contiguous())
            return
        product = operator.matmul(torch.cat([self.H, self.mean_weights[:, None]], dim=1))
        self.KH = product[:, :-1].contiguous()
        self._add_mean(product[:, -1].contiguous())

    def _add_mean(self, mean_row: Tensor) -> None:
        """Set the inner products of the mean, given those with all points."""
        self.mean_row = mean_row
        self.mean_scores = self.H.T @ mean_row
        self.mean_norm2 = float(mean_row @ self.mean_weights)

    def _invert(self, shrink: Shrinkage | None, normalized: bool, lengths: Tensor | None) -> None:
        """Set the inner products of the components, and the matrix from scores to coordinates."""
        M = (self.H.T.double() @ self.KH.double()).to(self.H)
        self.M = 0.5 * (M + M.T)
        if shrink is not None:
            self._inverse = self._shrunk(shrink, self.H.T @ self.H if lengths is None else lengths)
        else:
            self._inverse = _pseudo_inverse(self.M, self.H) if normalized else torch.eye(self.c).to(self.H)

    def _shrunk(self, shrink: Shrinkage, lengths: Tensor) -> Tensor:
        """Return the matrix from scores to shrunk coordinates, A diag(f(λ)/λ) Aᵀ.

        The columns of H_C A are the Ritz vectors of K_1 in the span of H_C: AᵀHᵀHA = I and AᵀMA = diag(λ).
        """
        squares, directions = torch.linalg.eigh(lengths.double())
        kept = squares > 100 * torch.finfo(self.H.dtype).eps * squares[-1]
        basis = directions[:, kept] / squares[kept].sqrt()
        values, vectors = torch.linalg.eigh(basis.T @ self.M.double() @ basis)
        ritz = basis @ vectors
        return ((ritz * self._inverse_values(values, shrink)) @ ritz.T).to(self.H)

    def _inverse_values(self, values: Tensor, shrink: Shrinkage | None) -> Tensor:
        """Return f(λ)/λ of Ritz values, 1/λ without shrinkage, and 0 for rounding errors."""
        # Smaller values are rounding errors, which the division would amplify.
        values = torch.where(values > 100 * torch.finfo(self.H.dtype).eps * values.max(), values, 0.0)
        weights = (values > 0).to(values) if shrink is None else shrink.weights(values)
        if shrink is not None and not self.center and not weights.any():
            largest = f"the largest eigenvalue is {float(values.max()):.3g}"
            raise NothingLeft(f"shrink: no component is left, {largest}, got {shrink.threshold:.3g}")
        return weights / torch.where(values > 0, values, 1.0)

    @property
    def is_in_memory(self) -> bool:
        """Whether the training points are in memory rather than in a file."""
        return isinstance(self.X, Tensor)

    def scores(self, k_rows: Tensor) -> Tensor:
        """Return t = H_Cᵀ k_1(X, x), equation (27) of the paper, as rows (m×c).

        They are computed from raw kernel rows k_1(x, X) (m×n), and centred if the components are. With a `reader` for
        features, they are computed from the rows φ_1(x).
        """
        width = len(self._reader)
        if k_rows.ndim != 2 or k_rows.shape[1] != width:
            per = "training point" if self._reader is self.H else "feature"
            raise ValueError(f"k_rows: expected {width} columns, one per {per}, got {tuple(k_rows.shape)}")
        return k_rows @ self._reader - self.mean_scores

    def coordinates(self, k_rows: Tensor) -> Tensor:
        """Return the coefficients a (m×c) of the projections Σ_c a_c v_c, from raw kernel rows k_1(x, X).

        The projection Pφ_1(x) = Σ_c a_c v_c is that of equations (23) and (24) of the paper, which have a = t.
        """
        return self.coordinates_from_scores(self.scores(k_rows))

    def coordinates_from_scores(self, scores: Tensor) -> Tensor:
        """Return the coefficients a = (H_Cᵀ K_1 H_C)⁺ t (m×c) from t, a point's inner products with the components."""
        if scores.ndim != 2 or scores.shape[1] != self.c:
            raise ValueError(f"scores: expected {self.c} columns, one per component, got {tuple(scores.shape)}")
        return scores @ self._inverse

    def training_coordinates(self) -> Tensor:
        """Return the coordinates of the training points (n×c)."""
        return self.coordinates_from_scores(self.KH - self.mean_scores)

    def weights(self, coordinates: Tensor) -> Tensor:
        """Return β (m×n), whose Σ_i β_i φ_1(x_i) is the projection of φ_1(x), the mean added back.

            β = H_C a,    a = (H_Cᵀ K_1 H_C)⁺ t,  t = H_Cᵀ k_1(X, x)

        with a from `coordinates`. Components of different layers are not orthogonal in the first feature space, hence
        the middle factor. Equation (29) of the paper has none, β = H_C H_Cᵀ k_1(X, x): the option `normalized=False`.
        With `shrink` the projection is weighted, β = U diag(f(λ)/λ) Uᵀ k_1(X, x), by the Ritz pairs (λ, U) of the span.
        """
        beta = coordinates @ self.H.T
        return beta.add_(self.mean_weights) if self.center else beta

    def norm2(self, coordinates: Tensor) -> Tensor:
        """Return the squared norm of each projection, the mean included."""
        inner = (coordinates @ self.M + 2 * self.mean_scores) * coordinates
        return inner.sum(dim=1) + self.mean_norm2

    def residual(self, points: Tensor, coordinates: Tensor) -> Tensor:
        """Return r(x) of each point against the projection in the same row, equations (25) and (28) of the paper.

        r(x) = ‖φ_1(x) - Σ_i β_i φ_1(x_i)‖² = k_1(x, x) - 2 Σ_i β_i k_1(x, x_i) + ‖Σ_i β_i φ_1(x_i)‖²
        """
        if self.kernel.is_explicit:
            with torch.no_grad():
                return (self.kernel.features(points) - self.projected_features(coordinates)).square().sum(dim=1)
        cross = points.new_empty(len(points))
        values = Cross(self.kernel, self.X)
        for rows in blocks(len(points), self.n, points):
            k = self.kernel(points[rows], self.X) if isinstance(self.X, Tensor) else values(points[rows])
            cross[rows] = (k * self.weights(coordinates[rows])).sum(dim=1)
        return (self.kernel.diagonal(points) - 2 * cross + self.norm2(coordinates)).clamp(min=0)

    def projected_features(self, coordinates: Tensor) -> Tensor:
        """Return the projections themselves (m×D), for a kernel of explicit features."""
        if self._features is None:
            block = torch.cat([self.H, self.mean_weights[:, None]], dim=1)
            self._features = feature_sums(self._operator, self.kernel, self.X, block).T
        projection = coordinates @ self._features[:-1]
        return projection + self._features[-1] if self.center else projection

    def nearest_training_point(self, coordinates: Tensor) -> tuple[Tensor, Tensor]:
        """Return the training point of smallest residual and that residual, for each projection.

        If a projection vanishes, as that of a sample far from all others, all training points are equally far from it.
        It gets the one that the components represent best, not whichever comes first: that may be the sample itself.
        """
        index = torch.empty(len(coordinates), dtype=torch.long, device=coordinates.device)
        best = coordinates.new_empty(len(coordinates))
        base = self.diagonal if self.mean_row is None else self.diagonal - 2 * self.mean_row
        # The constants are one more column of the product: adding a broadcast vector costs more.
        table = torch.cat([-2 * self.KH.T, base[None]])
        augmented = torch.cat([coordinates, torch.ones_like(coordinates[:, :1])], dim=1)
        for rows in blocks(len(coordinates), self.n, coordinates):
            best[rows], index[rows] = (augmented[rows] @ table).min(dim=1)
        if self.kernel.is_isotropic and not self.center:
            vanished = best >= 1 - VANISHED * torch.finfo(best.dtype).eps
            index[vanished] = self.KH.square().sum(dim=1).argmax()
        return index, (best + self.norm2(coordinates)).clamp(min=0)


class Eigenspace(Components):
    """Leading eigenvectors of K_1, or of the centred K_1: all matrices between them are diagonal.

    Parameters
    ----------
    kernel, X, H, center, gram, shrink
        As for `Components`; the columns of H are orthonormal eigenvectors.
    values : Tensor of shape (c,)
        Their eigenvalues.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Tensor,
        H: Tensor,
        values: Tensor,
        *,
        center: bool = False,
        gram: Gram,
        shrink: Shrinkage | None = None,
    ):
        self.values = values
        super().__init__(kernel, X, H, center=center, gram=gram, shrink=shrink)

    def _multiply(self, operator: Gram) -> None:
        if self.center:
            self._add_mean(operator.matmul(self.mean_weights[:, None])[:, 0])
        # With the mean m of φ_1(x_i), ⟨φ_1(x_i), v_c⟩ = ⟨φ_1(x_i) - m, v_c⟩ + ⟨m, v_c⟩.
        self.KH = self.H * self.values + self.mean_scores

    def _invert(self, shrink: Shrinkage | None, normalized: bool, lengths: Tensor | None) -> None:
        self.M = self.values.diag()
        self._inverse = self._inverse_values(self.values, shrink)

    def coordinates_from_scores(self, scores: Tensor) -> Tensor:
        """Return the coefficients f(λ)/λ · t (m×c) from t, a point's inner products with the components."""
        return scores * self._inverse

    def norm2(self, coordinates: Tensor) -> Tensor:
        """Return the squared norm of each projection, the mean included."""
        return coordinates.square() @ self.values + 2 * (coordinates @ self.mean_scores) + self.mean_norm2


def component_sums(fitted: FittedModel, gram: FirstGram, H: Tensor) -> Tensor | None:
    """Return ΦᵀH of the first layer, centred if the features are, with the mean feature as a last column.

    For the components of the first layer it is η_1 times the interconnection matrix W_1 = ΦᵀH_1/η_1 that equation (12)
    of the paper eliminates. Pre-images need nothing else of the samples; None for kernels without explicit features.
    """
    kernel = fitted.kernels[0]
    if not kernel.is_explicit:
        return None
    block = torch.cat([_centered(fitted, H), torch.full_like(H[:, :1], 1.0 / fitted.n)], dim=1)
    return feature_sums(gram.uncentered, kernel, fitted.X, block)


def component_lengths(fitted: FittedModel, H: Tensor) -> Tensor:
    """Return HᵀH over all samples, of centred H if the features are."""
    coefficients = _centered(fitted, H)
    return collectives.total(coefficients.T @ coefficients)


def _centered(fitted: FittedModel, H: Tensor) -> Tensor:
    return centered(H) if fitted.center else H


def components_of(
    fitted: FittedModel,
    gram: FirstGram,
    H: Tensor,
    sums: Tensor | None,
    lengths: Tensor | None,
    X: Tensor | Rows,
    *,
    normalized: bool = True,
    shrink: Shrinkage | None = None,
) -> Components:
    """Return components of a fitted model, for new points in the format of `drkm.gram.Cross`.

    `sums` and `lengths` are the parts of `component_sums` and `component_lengths` that belong to H, and X the training
    points. The feature space of a Nyström approximation is the span of the landmarks in that of the kernel itself:
    components become coefficients over landmarks, and pre-images are found with the kernel itself, without the samples.
    """
    kernel, center = fitted.kernels[0], fitted.center
    if sums is None:
        return Components(kernel, X, H, center=center, normalized=normalized, gram=gram.uncentered, shrink=shrink)
    if isinstance(kernel, NystroemFeatures):
        return on_landmarks(kernel, sums, center=center, normalized=normalized, shrink=shrink, lengths=lengths)
    if fitted.is_shared:
        raise ValueError(
            "gram: pre-images of samples that processes share need Nyström features in the first layer, "
            f"got {kernel.describe()}"
        )
    return Components(
        kernel,
        X,
        _centered(fitted, H),
        center=center,
        normalized=normalized,
        gram=gram.uncentered,
        mean_weights=torch.full_like(H[:, 0], 1.0 / fitted.n),
        reader=sums[:, :-1].contiguous(),
        shrink=shrink,
    )


def on_landmarks(
    kernel: NystroemFeatures,
    sums: Tensor,
    *,
    center: bool,
    normalized: bool = True,
    shrink: Shrinkage | None = None,
    lengths: Tensor | None = None,
) -> Components:
    """Return components of Nyström features as coefficients over the landmarks, from sums as of `component_sums`."""
    weights = kernel.factor @ sums
    return Components(
        kernel.kernel,
        kernel.landmarks,
        weights[:, :-1].contiguous(),
        center=center,
        normalized=normalized,
        mean_weights=weights[:, -1].contiguous(),
        reader=sums[:, :-1].contiguous(),
        shrink=shrink,
        lengths=lengths,
    )


def _operator(kernel: Kernel, X: Tensor) -> Gram:
    """Return the operator of K_1 that stores as little as possible."""
    if kernel.is_pairwise:
        return Dense().moving(kernel, X - X.mean(dim=0) if kernel.is_isotropic else X)
    return Dense().fixed(kernel, X)


def _pseudo_inverse(M: Tensor, H: Tensor) -> Tensor:
    """Return M⁺, truncated after scaling the columns of H to length 1, so that their lengths do not matter."""
    norm = H.double().norm(dim=0)
    scale = torch.where(norm > 0, 1.0 / norm, torch.zeros_like(norm))
    values, vectors = torch.linalg.eigh(M.double() * scale[:, None] * scale)
    keep = values > 100 * torch.finfo(M.dtype).eps * values[-1].clamp(min=0)
    inverse = torch.where(keep, 1.0 / torch.where(keep, values, 1.0), 0.0)
    vectors = scale[:, None] * vectors
    return ((vectors * inverse) @ vectors.T).to(M)
