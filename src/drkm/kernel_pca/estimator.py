"""Kernel PCA with scikit-learn's parameters, attributes and scaling of codes."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from drkm.kernel_pca import by_numpy, codes, parameters, ridge
from drkm.kernel_pca.codes import Codes
from drkm.kernel_pca.results import Results
from drkm.machine.threads import one_thread
from drkm.persistence import kernel_pca_file
from drkm.persistence.kernel_pca_file import SavedComponents
from drkm.serving import Projection
from drkm.validation import checks
from drkm.validation.nested import NestedParameters
from drkm.validation.samples import as_array, restored_on_failure
from drkm.wording import dtype_name

if TYPE_CHECKING:
    from drkm.inference.kernel_projection import KernelProjection, ProjectionModule


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, NestedParameters):
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
        are not exact. If at most an eighth of the spectrum of more than 120 samples is wanted, "auto" is Lanczos
        without restarts, with ARPACK for spectra that need restarts or if `max_iter` is given; else it is "dense".
        Other matrices (on a GPU, or with gram="tiled") are solved by a block Krylov method.
    tol, max_iter : float, int, default=0, None
        Tolerance of ARPACK, Lanczos and the block Krylov method, where 0 is machine precision, and iteration limit of
        ARPACK. The block Krylov method takes at most so many products with the matrix, by default 60, and warns if
        they are too few.
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
        How the kernel matrix is formed, as in `ConstrDRKM`. "dense" stores and reads only one half of it on a CPU, and
        is what "auto" takes there if that fits.
    device : str or torch.device, default="auto"
        As in `ConstrDRKM`; scikit-learn computes its kernels on a CPU, whatever the device.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision; "auto" is that of X on a CPU and float32 on a GPU. If float32 is too inexact for the samples, their
        distances or centred kernel values, "auto" computes in float64, and returns the precision of X all the same.
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
        Value of γ; kernel objects have their own parameters, in `kernel_`.
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
        chosen = self._parameters()
        parameters.check(chosen)
        options = parameters.eigen_options(chosen)
        learns = parameters.learns_inverse(chosen)
        if parameters.is_precomputed(self.kernel) and (learns or self.preimage):
            raise ValueError("kernel: Cannot fit_inverse_transform with a precomputed kernel, it has no input space")
        with restored_on_failure(self), one_thread(codes.are_few(X)):
            rows = codes.read(self, X, reset=True)
            found = by_numpy.fitted(rows, X, chosen, options)
            if found is None:
                from drkm.kernel_pca import fitting

                found = fitting.fitted(rows, X, chosen, options)
            self._set_fitted(found)
            if learns:
                self.X_transformed_fit_ = Z = self._training_codes()
                self.dual_coef_ = ridge.coefficients(self._kernel_of_codes, Z, self.X_fit_, self.alpha, self._computed)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit the model to the rows of X and return their codes."""
        return self.fit(X, y, **params)._training_codes()

    def transform(self, X: Any) -> Any:
        """Return the codes of the rows of X, which are centred with the means of the training samples."""
        check_is_fitted(self)
        found = self._codes(codes.read(self, X, reset=False))
        return found.to(X.device) if checks.is_tensor(X) else found

    def inverse_transform(self, X: Any) -> Any:
        """Return points of the input space for the codes in the rows of X, found as `preimage` says."""
        check_is_fitted(self)
        names = self.get_feature_names_out()
        if self.preimage in parameters.SEARCHES:
            from drkm.kernel_pca import inverse

            Z = inverse.read_codes(X, names, self._projection.weights)
            inverse.check_search(self.preimage, self.kernel_, self.kernel)
            points = inverse.preimages(Z, self.preimage, self._projection, self.eigenvalues_, self.eigenvectors_)
        elif hasattr(self, "dual_coef_"):
            K = ridge.values_on_codes(
                self._kernel_of_codes,
                ridge.read_codes(X, names, self._computed),
                self.X_transformed_fit_,
                self._computed,
            )
            points = K @ self.dual_coef_
        else:
            raise NotFittedError(
                "inverse_transform: the fit learned no inverse, set fit_inverse_transform=True, or "
                'preimage="fixed-point", "gradient" or "ridge"'
            )
        return codes.written(points, self._codes.precision, X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one safetensors file, which `drkm.load` reads; functions as kernel are refused."""
        check_is_fitted(self)
        entry, arrays = self._codes.described_kernel()
        saved = SavedComponents(
            samples=self.X_fit_,
            values=as_array(self.eigenvalues_),
            vectors=as_array(self.eigenvectors_),
            weights=self._codes.source.weights,
            shift=self._codes.source.shift,
            dual_coef=getattr(self, "dual_coef_", None),
            entry=entry,
            arrays=arrays,
            parameters=self._chosen,
            feature_names=[str(name) for name in getattr(self, "feature_names_in_", [])],
            kind_of_array="torch" if checks.is_tensor(self.eigenvalues_) else "numpy",
        )
        kernel_pca_file.write(path, saved)

    @classmethod
    def from_saved(cls, saved: SavedComponents) -> KernelPCA:
        """Rebuild the model of a file, after a check that its parameters and arrays belong together."""
        model = cls(**saved.parameters)
        chosen = model._parameters()
        parameters.check_saved(saved, chosen)
        model.n_features_in_ = saved.samples.shape[1]
        if saved.feature_names:
            model.feature_names_in_ = np.asarray(saved.feature_names, dtype=object)
        precision = dtype_name(saved.vectors.dtype)
        plain = saved.served(precision) if saved.kind_of_array == "numpy" else None
        if plain is not None:
            model._set_fitted(Results(saved.samples, saved.values, saved.vectors, plain, precision))
        else:
            from drkm.kernel_pca import by_torch

            model._set_fitted(by_torch.rebuilt(saved, parameters.kernel_choice(chosen)))
        if saved.dual_coef is not None:
            model.X_transformed_fit_, model.dual_coef_ = model._training_codes(), saved.dual_coef
        return model

    def to_torch(self) -> ProjectionModule:
        """Return `transform` as a `torch.nn.Module`, which `torch.export` accepts."""
        check_is_fitted(self)
        return self._projection.module(self._codes.precision)

    def to_numpy(self) -> Projection:
        """Return `transform` with numpy alone, as a `drkm.serving.Projection`, whose file is read without torch."""
        check_is_fitted(self)
        return self._codes.plain(tuple(map(str, getattr(self, "feature_names_in_", ()))))

    @property
    def kernel_(self) -> Any:
        """The kernel that was used."""
        return self._projection.kernel

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.pairwise = parameters.is_precomputed(self.kernel)
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.eigenvalues_.shape[0]

    def _parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _parameter_names()}

    @property
    def _projection(self) -> KernelProjection:
        return self._codes.projection

    @property
    def _computed(self) -> str:
        """The precision in which codes are computed."""
        return dtype_name(self._codes.source.weights.dtype)

    def _set_fitted(self, found: Results) -> None:
        """Set the attributes of a fit."""
        chosen = self._parameters()
        # For files: parameters that are set after a fit apply to the next one.
        self._chosen = {name: value for name, value in chosen.items() if name != "device"}
        self.gamma_ = parameters.kernel_choice(chosen).gamma_of(found.samples.shape[1])
        self.X_fit_, self.eigenvalues_, self.eigenvectors_ = found.samples, found.values, found.vectors
        self._codes = Codes(found.source, found.samples, found.precision)
        for name in ("dual_coef_", "X_transformed_fit_"):
            if hasattr(self, name):
                delattr(self, name)

    def _training_codes(self) -> Any:
        return self.eigenvectors_ * self.eigenvalues_**0.5

    @property
    def _kernel_of_codes(self) -> Any:
        """The kernel of the regression on codes: scikit-learn's if the caller gave a name, else that of the model."""
        choice = parameters.kernel_choice(self._chosen)
        is_own = callable(choice.kernel) and self.kernel_.is_of_torch
        return self.kernel_.original if is_own else choice.scikit(self.gamma_)


@cache
def _parameter_names() -> list[str]:
    """Return the names of the parameters, for which scikit-learn reads the signature at every call."""
    return KernelPCA._get_param_names()
