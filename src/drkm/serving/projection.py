"""The codes of a one-layer model as a function of samples, and its file.

Tensors of a file, for m given points, d features and k components:

    points              samples, landmarks or frequencies, m×d; missing if the kernel needs none
    weights, shift      A and b of the codes k(x, X)A - b; A is m×k, 2m×k for Fourier features, d×k without points

The header has the name and the parameters of the kernel, the names of the features, and the precision of the codes. A
file never holds code.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from drkm.arrays import forms
from drkm.arrays.exponents import Exponents, add_product
from drkm.files import container
from drkm.files.tensor_file import Stored
from drkm.machine.layout import slices
from drkm.serving.formulas import FORMULAS, Values
from drkm.validation import checks, parts

KIND, VERSION = "projection", 1
#: kernel values up to which a single thread computes them, and that are held at once where there are no tiles
FEW_VALUES, ENTRIES = 1 << 15, 1 << 22
PRECISIONS = ("float32", "float64")
HEADER = {
    "kind": parts.text,
    "version": parts.count(1),
    "kernel": parts.choice(*FORMULAS),
    "parameters": parts.present,
    "precision": parts.choice(*PRECISIONS),
    "feature_names": parts.several(parts.text),
}


@dataclass(frozen=True, repr=False)
class Projection:
    """`transform` of a one-layer model, x ↦ k(x, X)A - b, with numpy alone.

    Fitted models make one with `to_numpy()`.

    Parameters
    ----------
    kernel : str
        Name of the kernel's class; "Linear" without points also projects the values of a precomputed kernel.
    parameters : mapping
        Its parameters, as numbers.
    points : array of shape (m, d) or None
        X: samples, landmarks or frequencies. None for a kernel whose features are computed from x alone.
    weights : array of shape (m, k), (2m, k) or (d, k)
        A.
    shift : array of shape (k,)
        b.
    precision : {"float64", "float32"}
        Of the codes; that of the weights is the one of the computation.
    feature_names : sequence of str
        Names of the columns that a data frame must have, in their order; empty if the model was fitted without names.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_digits
    >>> import drkm
    >>> X = load_digits().data[:300]
    >>> path = os.path.join(tempfile.mkdtemp(), "digits.codes")
    >>> drkm.KernelPCA(5, kernel="rbf", gamma=1e-3).fit(X).to_numpy().save(path)
    >>> drkm.load(path).transform(X[:8]).shape
    (8, 5)
    """

    kernel: str
    parameters: Mapping[str, Any]
    points: np.ndarray | None
    weights: np.ndarray
    shift: np.ndarray
    precision: str = "float64"
    feature_names: Sequence[str] = ()

    def transform(self, X: Any) -> np.ndarray:
        """Return the codes of the rows of X, for a precomputed kernel those of rows of kernel values."""
        return self.codes(self._read(X))

    def codes(self, x: np.ndarray) -> np.ndarray:
        """Return the codes of the rows of an array that was checked."""
        with np.errstate(over="ignore", invalid="ignore"):
            # In rows: sums over columns are rounded in another order.
            x = np.ascontiguousarray(x, dtype=self.weights.dtype)
            codes = self._in_blocks(x) if self.are_few(len(x)) or self._exponents is None else self._in_tiles(x)
        if not np.isfinite(codes).all():
            bad = int((~np.isfinite(codes).all(axis=1)).sum())
            raise ValueError(f"X: the kernel returns NaN or inf for {bad} of these points")
        return codes.astype(self.precision, copy=False)

    def are_few(self, count: int) -> bool:
        """Whether so many points have so few kernel values that threads would take longer to start."""
        return count * len(self.weights) <= FEW_VALUES

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file, which `load` reads."""
        arrays = {"points": self.points, "weights": self.weights, "shift": self.shift}
        header = {"kernel": self.kernel, "parameters": dict(self.parameters), "precision": self.precision}
        header["feature_names"] = list(self.feature_names)
        stored = {name: Stored.of(array) for name, array in arrays.items() if array is not None}
        container.write(path, stored, {"kind": KIND, "version": VERSION, **header})

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"<Projection of {self.n_features} features to {len(self.shift)} codes, {self.kernel}({given})>"

    @property
    def is_quick(self) -> bool:
        """Whether it computes the codes of many points as fast as torch does."""
        return self.points is None or forms.named(self.kernel, self.parameters, 0) is not None

    @property
    def n_features(self) -> int:
        """d, the number of features of a sample."""
        return self.weights.shape[0] if self.points is None else self.points.shape[1]

    @cached_property
    def _values(self) -> Values:
        points = np.empty((0, 0)) if self.points is None else self.points
        return FORMULAS[self.kernel].prepared(points, self.parameters)

    @cached_property
    def _exponents(self) -> Exponents | None:
        form = None if self.points is None else forms.named(self.kernel, self.parameters, len(self.points) ** 2)
        return None if form is None else Exponents(form, self.points)

    def _in_blocks(self, x: np.ndarray) -> np.ndarray:
        codes = np.empty((len(x), len(self.shift)), self.weights.dtype)
        for rows in slices(len(x), max(1, ENTRIES // len(self.weights))):
            np.matmul(self._values(x[rows]), self.weights, out=codes[rows])
        codes -= self.shift
        return codes

    def _in_tiles(self, x: np.ndarray) -> np.ndarray:
        codes = np.repeat(-self.shift[None], len(x), axis=0)
        assert self._exponents is not None
        add_product(self._exponents, x, self.weights, codes)
        return codes

    def __getstate__(self) -> dict[str, Any]:
        # What can be prepared again is not pickled.
        return {name: value for name, value in vars(self).items() if name not in ("_values", "_exponents")}

    def _read(self, X: Any) -> np.ndarray:
        """Return points as an array in the precision of the weights."""
        names = getattr(X, "columns", None)
        if names is not None and self.feature_names:
            for name, expected in zip(names, self.feature_names, strict=False):
                if str(name) != expected:
                    raise ValueError(f"X: expected the columns of the fit in order, got {name!r} for {expected!r}")
        if np.ma.is_masked(X):
            raise ValueError("X: contains masked values")
        try:
            x = np.asarray(X)
            if (found := checks.not_numbers(x)) or x.dtype.kind not in "biufO":
                raise TypeError(f"got {found or x.dtype}")
            x = x.astype(self.weights.dtype, copy=False)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(f"X: expected a table of numbers ({error})") from error
        if x.ndim != 2 or x.shape[1] != self.n_features:
            got = "×".join(map(str, x.shape)) or "one number"
            one = ": one point is a table of one row, x[None]" if x.shape == (self.n_features,) else ""
            raise ValueError(f"X: expected rows of {self.n_features} features, got {got}{one}")
        if not np.isfinite(x).all():
            raise ValueError("X: contains NaN or infinity")
        return x


def load(path: str | os.PathLike[str]) -> Projection:
    """Read the file of a projection, or raise an error that says what is wrong."""
    stored, header = container.read_stored(path, KIND, VERSION)
    try:
        return _rebuilt(stored, header)
    except (TypeError, ValueError) as error:
        raise ValueError(f"path: {os.fspath(path)} is not a drkm {KIND} ({error})") from error


def _rebuilt(stored: Mapping[str, Stored], header: dict[str, Any]) -> Projection:
    """Return the projection after a check that its parts belong together."""
    parts.check(header, HEADER)
    formula = FORMULAS[header["kernel"]]
    parts.check(header["parameters"], formula.parameters)
    expected = {**({"points": 2} if formula.columns else {}), "weights": 2, "shift": 1}
    if set(stored) != set(expected):
        raise ValueError(f"expected {', '.join(expected)}, got {', '.join(sorted(stored)) or 'nothing'}")
    arrays = {name: _numbers(name, stored[name], dimensions) for name, dimensions in expected.items()}
    names = header["feature_names"]
    points, weights, shift = arrays.get("points"), arrays["weights"], arrays["shift"]
    rows = len(weights) if points is None else formula.columns * len(points)
    if not rows or weights.shape != (rows, len(shift)) or len({array.dtype for array in arrays.values()}) > 1:
        raise ValueError(f"weights: expected {rows or 'n'}×{len(shift)} numbers in the precision of the others")
    projection = Projection(header["kernel"], header["parameters"], points, weights, shift, header["precision"], names)
    if names and len(names) != projection.n_features:
        raise ValueError(f"feature_names: expected {projection.n_features}, got {len(names)}")
    return projection


def _numbers(name: str, stored: Stored, dimensions: int) -> np.ndarray:
    if stored.dtype not in PRECISIONS or len(stored.shape) != dimensions:
        shape = "×".join(map(str, stored.shape))
        raise ValueError(f"{name}: expected numbers in {dimensions} dimensions, got {stored.dtype} of shape {shape}")
    array = stored.array()
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: expected finite numbers, got NaN or inf")
    return array
