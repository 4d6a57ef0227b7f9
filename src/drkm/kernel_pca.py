"""Kernel PCA with scikit-learn's parameters, attributes and scaling of codes."""

from __future__ import annotations

import math
import os
from functools import cache
from numbers import Integral
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from drkm import inputs
from drkm.distributed import collectives
from drkm.inference.kernel_projection import KernelProjection, ProjectionModule
from drkm.inference.subspace import Components, on_landmarks
from drkm.kernels import Kernel, bandwidth
from drkm.kernels import scikit_learn as scikit
from drkm.kernels.scikit_learn import ScikitKernel
from drkm.machine.threads import SMALL, one_thread
from drkm.persistence import model_file
from drkm.persistence.kernel_pca_file import SavedComponents
from drkm.problem.spectrum import SOLVERS, Method
from drkm.training import kernel_components, parameters
from drkm.training.kernel_components import KernelComponents
from drkm.validation import checks

PREIMAGES = (None, "ridge", "fixed-point", "gradient")


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Kernel principal component analysis, a drop-in replacement for `sklearn.decomposition.KernelPCA`.

    Parameters, attributes and codes are those of scikit-learn; `gram`, `device`, `dtype` and `preimage` are additions.
    The model is one centred layer of `ConstrDRKM`; docs/coming-from-kernel-pca.md maps the parameters of one class to
    those of the other.

    Parameters
    ----------
    n_components : int, optional
        Number of components; by default all with a nonzero eigenvalue.
    kernel : {"linear", "poly", "rbf", "sigmoid", "cosine", "precomputed"}, callable or Kernel, default="linear"
        A name, a function of two samples, or a `drkm.kernels` object, whose bandwidth rules are those of layer 1.
    gamma : float, optional
        γ of "rbf" (exp(-γ‖x-y‖²), so that σ² = 1/(2γ)), "poly" and "sigmoid"; by default 1/n_features.
    degree, coef0 : float, default=3, 1
        p and c of "poly", (γ x·y + c)^p, and c of "sigmoid".
    kernel_params : dict, optional
        Further arguments of a function given as `kernel`.
    alpha : float, default=1.0
        Penalty of the ridge regression behind `inverse_transform`.
    fit_inverse_transform : bool, default=False
        Learn that regression in `fit`.
    eigen_solver : {"auto", "dense", "arpack", "randomized"}, default="auto"
        Eigensolver for kernel matrices that are in the memory of a CPU: LAPACK, ARPACK, or random projections, which
        are not exact. If at most an eighth of the spectrum of more than 200 samples is wanted, "auto" is Lanczos
        without restarts, with ARPACK for spectra that need restarts; else it is "dense". Other matrices (on a GPU, or
        with gram="tiled") are solved by a block Krylov method.
    tol, max_iter : float, int, default=0, None
        Tolerance of ARPACK and Lanczos, where 0 is machine precision, and iteration limit of ARPACK.
    iterated_power : int or "auto", default="auto"
        Number of power iterations of "randomized".
    remove_zero_eig : bool, default=False
        Leave out components whose eigenvalue is zero.
    random_state : int, RandomState instance or None, default=None
        Seed of ARPACK's start vector and of random projections. Exact eigenpairs depend on it only through rounding.
    copy_X : bool, default=True
        Keep a copy of X, so that changes of the caller's array do not change the model.
    n_jobs : int, optional
        Number of processes for kernels that scikit-learn computes: functions, "sigmoid", and all kernels of sparse
        samples.
    gram : str or Strategy, default="auto"
        How the kernel matrix is formed, as in `ConstrDRKM`. "dense" stores and reads only one half of it on a CPU.
    device : str or torch.device, default="auto"
        As in `ConstrDRKM`.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision; "auto" is that of X on a CPU and float32 on a GPU. If float32 is too inexact for the distances of
        "rbf", or for the centred products of "poly", "auto" computes in float64, and returns the precision of X all the
        same.
    preimage : {None, "ridge", "fixed-point", "gradient"}, default=None
        How `inverse_transform` finds points. None is scikit-learn's behaviour, which needs fit_inverse_transform=True.
        "ridge" is the same regression without that flag. The others search for the point whose image is nearest to the
        projection, and need no regression (docs/denoising.md).

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        Eigenvalues of the centred kernel matrix, in descending order.
    eigenvectors_ : array of shape (n_samples, n_components)
        Eigenvectors of length 1; the codes of the samples are `eigenvectors_ · √eigenvalues_`.
    dual_coef_, X_transformed_fit_ : arrays of shape (n_samples, n_features) and (n_samples, n_components)
        Coefficients of the regression and the codes it was learned from, if it was learned.
    X_fit_ : array or sparse matrix of shape (n_samples, n_features)
        The samples.
    gamma_ : float
        Value of γ.
    kernel_ : Kernel or ScikitKernel
        The kernel that was used, with all parameters as numbers.
    n_features_in_, feature_names_in_
        Number and names of the features seen by `fit`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from drkm import KernelPCA
    >>> X = load_digits().data
    >>> KernelPCA(n_components=7, kernel="rbf", gamma=1e-3).fit_transform(X).shape
    (1797, 7)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Any = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        alpha: float = 1.0,
        fit_inverse_transform: bool = False,
        eigen_solver: str = "auto",
        tol: float = 0,
        max_iter: int | None = None,
        iterated_power: int | str = "auto",
        remove_zero_eig: bool = False,
        random_state: Any = None,
        copy_X: bool = True,
        n_jobs: int | None = None,
        gram: Any = "auto",
        device: Any = "auto",
        dtype: Any = "auto",
        preimage: str | None = None,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alpha = alpha
        self.fit_inverse_transform = fit_inverse_transform
        self.eigen_solver = eigen_solver
        self.tol = tol
        self.max_iter = max_iter
        self.iterated_power = iterated_power
        self.remove_zero_eig = remove_zero_eig
        self.random_state = random_state
        self.copy_X = copy_X
        self.n_jobs = n_jobs
        self.gram = gram
        self.device = device
        self.dtype = dtype
        self.preimage = preimage

    def fit(self, X: Any, y: Any = None) -> KernelPCA:
        """Fit the model to the rows of X; for kernel="precomputed", X is their kernel matrix."""
        method = self._method()
        learns = self._learns
        if self._is_precomputed and (learns or self.preimage):
            raise ValueError("kernel: Cannot fit_inverse_transform with a precomputed kernel, it has no input space")
        with inputs.restored_on_failure(self), one_thread(_is_small(X)):
            samples = self._samples(X)
            if learns and hasattr(samples, "tocsr"):
                raise NotImplementedError("Inverse transform not implemented for sparse matrices!")
            self.gamma_ = self._gamma(samples.shape[1])
            self._check_preimage(self._own_kernel(samples.shape[1]) if isinstance(samples, Tensor) else None)
            room = self._room(samples, X)
            found = self._components(samples, method, room)
            self._set_fitted(samples if room is None else room.copy_(samples), found, X)
            if learns:
                self._learn_inverse()
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit the model to the rows of X and return their codes."""
        return self.fit(X, y, **params)._training_codes()

    def transform(self, X: Any) -> Any:
        """Return the codes of the rows of X, which are centred with the means of the training samples."""
        check_is_fitted(self)
        points = self._read(X, reset=False)
        if not isinstance(self.kernel_, ScikitKernel):
            points = points.toarray() if hasattr(points, "tocsr") else points
            points = _tensor(points).to(self._projection.weights)
        codes = self._projection(points)
        if not isinstance(self.kernel_, ScikitKernel):
            _check_finite(codes)
        return inputs.write(codes.to(self._precision), X)

    def inverse_transform(self, X: Any) -> Any:
        """Return points of the input space for the codes in the rows of X, found as `preimage` says."""
        check_is_fitted(self)
        if self.preimage in ("fixed-point", "gradient"):
            return inputs.write(self._preimages(self._codes(X)).to(self._precision), X)
        if not hasattr(self, "dual_coef_"):
            raise NotFittedError(
                "inverse_transform: the fit learned no inverse, set fit_inverse_transform=True, or "
                'preimage="fixed-point", "gradient" or "ridge"'
            )
        points = self._on_codes(self._codes(X), self.X_transformed_fit_) @ self.dual_coef_
        return inputs.write(torch.from_numpy(points).to(self._precision), X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one safetensors file, which `drkm.load` reads; functions as kernel are refused."""
        check_is_fitted(self)
        kernel = None if isinstance(self.kernel_, ScikitKernel) else self.kernel_
        values, vectors = _array(self.eigenvalues_), _array(self.eigenvectors_)
        found = KernelComponents(kernel, values, vectors, self._projection.weights, self._projection.shift)
        names = [str(name) for name in getattr(self, "feature_names_in_", [])]
        kind = "torch" if isinstance(self.eigenvalues_, Tensor) else "numpy"
        dual_coef = getattr(self, "dual_coef_", None)
        samples = self._projection.points
        samples = samples.to(self._precision) if isinstance(samples, Tensor) else samples
        model_file.write_components(path, SavedComponents(samples, found, dual_coef, self._chosen, names, kind))

    @classmethod
    def from_saved(cls, saved: SavedComponents) -> KernelPCA:
        """Rebuild the model of a file, after a check that its parameters and arrays belong together."""
        model = cls(**saved.parameters)
        samples = saved.samples
        model._method()
        parameters.strategy(model.gram)
        parameters.dtype(model.dtype, torch.device("cpu"))
        model.n_features_in_ = samples.shape[1]
        if saved.feature_names:
            model.feature_names_in_ = np.asarray(saved.feature_names, dtype=object)
        own = None if hasattr(samples, "tocsr") else model._own_kernel(samples.shape[1])
        computed = saved.found.kernel and saved.found.kernel.original
        if (computed is None) != (own is None) or (own is not model.kernel and own != computed):
            raise ValueError("kernel: expected the kernel that the parameters name")
        if model._learns != (saved.dual_coef is not None):
            raise ValueError("dual_coef: expected if and only if an inverse transform is learned")
        like = saved.found.weights if saved.kind_of_array == "torch" else None
        model.gamma_ = model._gamma(samples.shape[1])
        model._set_fitted(samples, saved.found, like)
        if saved.dual_coef is not None:
            model.X_transformed_fit_, model.dual_coef_ = model._training_codes(), saved.dual_coef
        return model

    def to_torch(self) -> ProjectionModule:
        """Return `transform` as a `torch.nn.Module`, which `torch.export` accepts."""
        check_is_fitted(self)
        return self._projection.module()

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.pairwise = self._is_precomputed
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.eigenvalues_.shape[0]

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def _learns(self) -> bool:
        return self.fit_inverse_transform or self.preimage == "ridge"

    def _method(self) -> Method:
        """Check all parameters and return how eigenpairs are found."""
        if self.n_components is not None:
            checks.integer("n_components", self.n_components, 1)
        self._check_kernel()
        for name in ("gamma", "degree", "alpha", "tol"):
            if getattr(self, name) is not None or name != "gamma":
                checks.number(name, getattr(self, name), positive=False)
        checks.real("coef0", self.coef0)
        for name in ("fit_inverse_transform", "remove_zero_eig", "copy_X"):
            checks.boolean(name, getattr(self, name))
        if self.max_iter is not None:
            checks.integer("max_iter", self.max_iter, 1)
        if not (isinstance(self.iterated_power, str) and self.iterated_power == "auto"):
            checks.integer("iterated_power", self.iterated_power, 0)
        parameters.one_of("preimage", self.preimage, PREIMAGES)
        solver = parameters.one_of("eigen_solver", self.eigen_solver, SOLVERS)
        return Method(solver, self.tol, self.max_iter, self.iterated_power, checks.random_state(self.random_state))

    def _check_kernel(self) -> None:
        if not callable(self.kernel):
            parameters.one_of("kernel", self.kernel, scikit.NAMES)
        if isinstance(self.kernel, type):
            raise TypeError(f"kernel: expected an object, as {self.kernel.__name__}(), got the class")
        if getattr(self.kernel, "is_given", False):
            raise ValueError(f'kernel: a kernel matrix is given as X with kernel="precomputed", got {self.kernel!r}')
        if self._learns and hasattr(self.kernel, "map"):
            raise ValueError("kernel: a feature map has no values on codes to learn from, use preimage='gradient'")
        if not isinstance(self.kernel_params, dict | None):
            raise TypeError(f"kernel_params: expected a dict or None, got {self.kernel_params!r}")
        if self.n_jobs is not None and (not isinstance(self.n_jobs, Integral) or self.n_jobs == 0):
            raise ValueError(f"n_jobs: expected a number of processes, or -1 for all, got {self.n_jobs!r}")

    def _read(self, X: Any, *, reset: bool) -> Any:
        """Validate X and return it as an array, which may be sparse, or as a tensor."""
        if isinstance(X, Tensor):
            return inputs.read(self, X, reset=reset)
        sparse = False if self._is_precomputed else "csr"
        return inputs.checked(self, X, reset=reset, accept_sparse=sparse, dtype=(np.float64, np.float32))

    def _codes(self, X: Any) -> Tensor:
        """Return codes to invert, one column per component, in the precision of the model."""
        codes, count = parameters.array("X", X), self.eigenvalues_.shape[0]
        if codes.ndim != 2 or codes.shape[1] != count:
            raise ValueError(f"X: expected m×{count} codes, got {'×'.join(map(str, codes.shape))}")
        if not torch.isfinite(codes).all():
            raise ValueError("X: contains NaN or infinity")
        return codes.to(self._projection.weights)

    def _samples(self, X: Any) -> Any:
        """Return the samples of a fit: a tensor where torch computes their kernel, else an array."""
        samples = self._read(X, reset=True)
        if hasattr(samples, "tocsr") or self._own_kernel(samples.shape[1]) is None:
            if not isinstance(self.gram, str) or self.gram not in ("auto", "dense"):
                raise ValueError(f"gram: {self.gram!r} needs dense samples and a kernel of ours, got {self.kernel!r}")
            samples = samples.numpy(force=True) if isinstance(samples, Tensor) else samples
            # Checked before the fit, which centres a given matrix in place.
            return samples.copy() if self.copy_X or isinstance(X, Tensor) else samples
        tensor = _tensor(samples)
        device = parameters.device(self.device, X.device if isinstance(X, Tensor) else None, len(tensor))
        keeps = device.type == "cpu" and isinstance(self.dtype, str) and self.dtype == "auto"
        return inputs.place(tensor, X, tensor.dtype if keeps else parameters.dtype(self.dtype, device), device)

    def _room(self, samples: Any, X: Any) -> Tensor | None:
        """Allocate the model's own copy of the caller's array, which a fit may use as scratch, or None."""
        if not self.copy_X or isinstance(X, Tensor) or not isinstance(samples, Tensor) or samples.is_cuda:
            return None
        is_own = isinstance(X, np.ndarray) and not np.may_share_memory(samples.numpy(), X)
        return None if is_own else torch.empty_like(samples)

    def _gamma(self, n_features: int) -> float:
        return 1 / n_features if self.gamma is None else float(self.gamma)

    def _own_kernel(self, n_features: int) -> Kernel | None:
        return scikit.own_kernel(self.kernel, self._gamma(n_features), self.degree, self.coef0)

    def _scikit_kernel(self) -> ScikitKernel:
        named = {"gamma": self.gamma_, "degree": self.degree, "coef0": self.coef0}
        given = (self.kernel_params or {}) if callable(self.kernel) else named
        return ScikitKernel(self.kernel, given, self.n_jobs)

    def _components(self, samples: Any, method: Method, room: Tensor | None) -> KernelComponents:
        keep_zeros = self.n_components is not None and not self.remove_zero_eig
        if isinstance(samples, Tensor):
            kernel = self._own_kernel(samples.shape[1])
            assert kernel is not None
            # Kernels with scikit-learn's names have numbers for parameters already.
            kernel = kernel.resolve(samples, layer=1) if kernel is self.kernel else kernel
            largest = _check_size(kernel, samples)
            samples = self._in_enough_digits(kernel, samples, largest)
            room = None if room is None or room.dtype != samples.dtype else room
            strategy = parameters.strategy(self.gram)
            if strategy.shares:
                raise ValueError(f"gram: {self.gram!r} shares samples among processes: use ConstrDRKM(center=True)")
            return kernel_components.of_samples(
                samples, kernel, self.n_components, method, strategy, keep_zeros=keep_zeros, room=room
            )
        # What numpy would warn of is refused in the next lines; a sum holds no second matrix.
        with np.errstate(over="ignore", invalid="ignore"):
            K = np.asarray(self._scikit_kernel()(samples))
            is_finite = np.isfinite(K.sum())
        if not is_finite:
            raise ValueError(f"kernel: {self.kernel!r} has values on these samples that are NaN or infinite")
        return kernel_components.of_matrix(K, self.n_components, method, keep_zeros=keep_zeros)

    def _in_enough_digits(self, kernel: Kernel, X: Tensor, largest: float) -> Tensor:
        """Return samples in float64 if float32 is too inexact for their distances, or for products that are centred.

        An error if float64 is too inexact for distances. `largest` is that of ‖x‖², which bounds their rounding error
        at no cost. Widths of kernel objects were checked when they were resolved, and features are centred themselves.
        """
        may_change = isinstance(self.dtype, str) and self.dtype == "auto"
        if not kernel.is_isotropic:
            hidden = may_change and X.dtype == torch.float32 and kernel.is_pairwise and _is_lost_in_centring(kernel, X)
            return X.double() if hidden else X
        sigma2 = kernel.bandwidth
        if kernel is self.kernel or torch.finfo(X.dtype).eps * largest <= bandwidth.WORST_ROUNDING * sigma2:
            return X
        if may_change and bandwidth.is_hidden_by_rounding(sigma2, X):
            X = X.double()
        bandwidth.check_rounding(sigma2, X, layer=1, told=f"gamma: {self.gamma_:.3g}, so that sigma2 is {sigma2:.3g},")
        return X

    def _set_fitted(self, samples: Any, found: KernelComponents, X: Any) -> None:
        like = X if isinstance(X, Tensor) else None
        # For files: parameters that are set after a fit apply to the next one.
        kind: Any = type(self)
        self._chosen = {name: getattr(self, name) for name in _parameters(kind) if name != "device"}
        self.kernel_ = self._scikit_kernel() if found.kernel is None else found.kernel
        # Scikit-learn's own where the caller named it: the regression is to be the same.
        own = found.kernel if callable(self.kernel) else None
        self._kernel_of_codes: Any = self._scikit_kernel() if own is None else own.original
        is_tensor = isinstance(samples, Tensor)
        # More than that of the samples where their distances need more digits.
        points = samples.to(found.weights.dtype) if is_tensor else samples
        self._precision = samples.dtype if is_tensor else found.weights.dtype
        self._projection = KernelProjection(self.kernel_, points, found.weights, found.shift)
        self.X_fit_ = inputs.write(samples, like) if is_tensor else samples
        arrays = (np.ascontiguousarray(part) for part in (found.values, found.vectors))
        pairs = (torch.from_numpy(part).to(self._precision) for part in arrays)
        self.eigenvalues_, self.eigenvectors_ = (inputs.write(part, like) for part in pairs)
        for name in ("dual_coef_", "X_transformed_fit_"):
            if hasattr(self, name):
                delattr(self, name)

    def _training_codes(self) -> Any:
        return self.eigenvectors_ * self.eigenvalues_**0.5

    def _learn_inverse(self) -> None:
        """Learn a kernel ridge regression from codes to samples, with the kernel of the model on the codes."""
        from scipy.linalg import solve

        if not self._n_features_out:
            raise ValueError("X: no component has a positive eigenvalue, so that there are no codes to learn from")
        self.X_transformed_fit_ = self._training_codes()
        K = self._on_codes(self.X_transformed_fit_, self.X_transformed_fit_)
        K[np.diag_indices_from(K)] += self.alpha
        try:
            self.dual_coef_ = solve(K, _array(self.X_fit_), assume_a="pos", overwrite_a=True)
        except np.linalg.LinAlgError as error:
            told = f"alpha: with {self.alpha} the regression of fit_inverse_transform is singular, take a larger number"
            raise np.linalg.LinAlgError(told) from error

    def _on_codes(self, Z: Any, centres: Any) -> np.ndarray:
        """Return the values of the fitted kernel on codes."""
        if isinstance(self._kernel_of_codes, ScikitKernel):
            return self._kernel_of_codes(_array(Z), _array(centres))
        pair = (parameters.array("X", part).to("cpu", self._projection.weights.dtype) for part in (Z, centres))
        return np.asarray(self._kernel_of_codes(*pair))

    def _check_preimage(self, kernel: Any) -> None:
        """Raise an error if `preimage` is a search that there is not for this kernel."""
        if self.preimage not in ("fixed-point", "gradient"):
            return
        if kernel is None or isinstance(kernel, ScikitKernel):
            needs = f"needs dense samples and a kernel of ours, got {getattr(kernel, 'metric', self.kernel)!r}"
            raise NotImplementedError(f'preimage: {self.preimage!r} {needs}; use "ridge"')
        if self.preimage == "fixed-point" and not kernel.is_isotropic and not kernel.preimages_without_samples:
            needs = f"needs a kernel of distances (RBF, Laplacian, Matern), got {type(kernel).__name__}"
            raise TypeError(f'preimage: "fixed-point" {needs}; use "gradient" or "ridge"')

    def _preimages(self, codes: Tensor) -> Tensor:
        """Return the points whose images are nearest to the projections with these codes."""
        self._check_preimage(self.kernel_)
        kernel: Any = self.kernel_
        values, H = (torch.as_tensor(part).to(codes) for part in (self.eigenvalues_, self.eigenvectors_))
        positive = values > 0
        if not positive.any():
            raise ValueError("X: no component of the model has a positive eigenvalue, so that codes say nothing")
        values, H = values[positive], H[:, positive]
        X = self._projection.points
        if kernel.preimages_without_samples:
            sums = self._projection.weights[:, positive] * values.sqrt()
            mean = kernel.table(X).mean(dim=0)
            basis = on_landmarks(kernel, torch.cat([sums, mean[:, None]], dim=1), center=True)
        else:
            basis = Components(kernel, X, H, center=True)
        coordinates = basis.coordinates_from_scores(codes[:, positive] * values.sqrt())
        from drkm.inference.preimage import preimage

        return preimage(basis, coordinates, method=str(self.preimage)).points


def _check_size(kernel: Kernel, X: Tensor) -> float:
    """Return the largest ‖x‖², or kernel value, or raise an error if their precision cannot hold n times that."""
    longest = X[torch.linalg.vector_norm(X, dim=1).argmax()][None]
    largest = longest.square().sum() if kernel.is_isotropic else kernel.diagonal(longest).sum()
    largest = largest.detach()
    if not math.isfinite(len(X) * largest):
        kind = str(X.dtype).removeprefix("torch.")
        raise ValueError(f"X: values of the kernel are beyond {kind}: divide the data by their typical size")
    return largest.item()


def _is_lost_in_centring(kernel: Kernel, X: Tensor) -> bool:
    """Whether rounding hides what centring leaves of kernel values, as those of a polynomial far from zero."""
    rows = collectives.spread_rows(X, bandwidth.DIGITS_ROWS).double()
    K = kernel(rows, rows)
    left = K.diagonal().mean() - K.mean()
    return bool(torch.finfo(X.dtype).eps * K.abs().mean() > bandwidth.WORST_ROUNDING * left)


def _check_finite(codes: Tensor) -> None:
    """Raise an error if kernel values of points are more than their precision can hold."""
    with one_thread():
        finite = codes.isfinite()
        if not finite.all():
            bad = int((~finite.all(dim=1)).sum())
            raise ValueError(f"X: the kernel returns NaN or inf for {bad} of these points")


def _is_small(X: Any) -> bool:
    """Whether samples are so few that threads take longer to wake up than to copy and multiply them."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    return len(shape) > 0 and shape[0] ** 2 < SMALL


@cache
def _parameters(kind: Any) -> list[str]:
    """Return the names of the parameters, for which scikit-learn reads the signature at every call."""
    return kind._get_param_names()


def _array(values: Any) -> np.ndarray:
    """Return values as an array, copied from the GPU if they are there."""
    return values.numpy(force=True) if isinstance(values, Tensor) else np.asarray(values)


def _tensor(samples: Any) -> Tensor:
    """Return samples as a floating-point tensor, without a copy where possible."""
    if isinstance(samples, Tensor):
        return samples if samples.is_floating_point() else samples.double()
    return torch.from_numpy(np.require(samples, requirements=["C", "W"]))
