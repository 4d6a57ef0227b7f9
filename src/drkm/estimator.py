"""The estimator: parameters in, fitted attributes out."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from drkm import inputs, strange_data
from drkm.distributed import collectives
from drkm.files.rows import Rows, in_memory
from drkm.fitted import FittedModel
from drkm.gram import Gram, Strategy
from drkm.inference.inference import Inference
from drkm.inference.passing import NoiseWarning
from drkm.inference.point_methods import PointMethods
from drkm.inputs.preparation import Preparation
from drkm.kernel_pca import KernelPCA
from drkm.kernels import Kernel
from drkm.persistence import model_file
from drkm.persistence.kernel_pca_file import SavedComponents
from drkm.persistence.model_file import SavedModel
from drkm.summary import doubt_of_convergence
from drkm.summary import summary as summarise
from drkm.training import dimensions, parameters, train
from drkm.training.checkpoint.fingerprint import fingerprint, settings
from drkm.training.progress import progress_shown
from drkm.validation import checks, nested

__all__ = ["ConstrDRKM", "NoiseWarning", "load", "load_prepared"]

#: parameters that do not change the result of a fit, only how it is reached or shown
INCIDENTAL = ("callbacks", "checkpoint", "max_seconds", "verbose", "device", "shrink")
#: parameters that processes which share the samples may have of their own: rows of a start, and a random state that
#: they then agree on
OWN = ("init", "random_state")


class ConstrDRKM(PointMethods, BaseEstimator):
    """Deep restricted kernel machine with orthogonality constraints.

    Several kernel PCA layers trained end to end: layer l finds `n_components[l]` codes of every sample from those of
    the layer below, and the codes of all layers are orthonormal, HᵀH = I. The energy that is minimised is
    J(H) = -Σ_l 1/(2η_l) tr(H_lᵀ K_l H_l), with K_l the kernel matrix of the codes of layer l-1.

    Arrays, frames and tensors are answered in kind; a method that is given no data, like `sample`, answers in the kind
    that `fit` got.

    Parameters
    ----------
    n_components : int or sequence of int, default=(10, 5)
        Components of each layer; an integer means one layer, which is kernel PCA.
    kernel : str, Kernel or sequence of these, default="rbf"
        A name, a `drkm.kernels` object, or one of those per layer. "rbf" takes the median bandwidth in layer 1 and the
        scale of the codes above. A grid search reaches into objects: `kernel__layer1__sigma2`.
    sigma2 : float, str, None or sequence of these, default=None
        Bandwidth σ² of kernels given by name: one for all layers or one per layer, a number or a rule, "median" (layer
        1) or "scale"; None or "auto" is the rule of the kernel. A kernel object brings its own.
    center : bool, default=False
        Centre every layer in its feature space.
    eta : "auto", float or sequence of float, default="auto"
        Weight 1/η_l of each layer. Different values for different layers change the solution; a common factor does not.
        "auto" makes deep layers so light that the layer below keeps the directions that another draw of samples would
        give too: `eta_` has the numbers, docs/model.md the rule. 1.0 is the paper's choice: layer 1 then has a small
        effective sample size.
    lam : float or sequence of float, default=1.0
        λ_l of the paper. On the manifold its term is constant: it acts in solver="penalty" and encoder="projection".
    init : {"kpca", "random", "orthogonal"} or array of shape (n_samples, S), default="kpca"
        Where training begins.
    n_init : int, default=1
        Number of starts, of which the one of lowest energy is kept. The second is `init` after gradient steps, further
        ones are random points around it; those that are behind the best one halfway are given up (docs/solvers.md).
    solver : str or Solver, default="auto"
        "auto", "lbfgs", "trust-region", "projected-gradient", "penalty" (Algorithm 1 of the paper),
        "augmented-lagrangian", or an object of `drkm.solvers`. "auto" is an eigensolver for one layer and "lbfgs" else.
    axes : {"ritz", "varimax", "ica", None}, default="ritz"
        Which basis of each layer is reported; the energy does not depend on it. Below a feature map it does, and the
        basis is the one that the map sees.
    encoder : {"stationary", "projection"}, default="stationary"
        How new points get their codes: by the stationarity of the fit, or by the formulas of the paper.
    shrink : float, pair of str and float or None, default=None
        What `denoise`, `inverse_transform`, `traverse` and `sample` make of the components: a number t weighs each by
        max(1 - t/λ, 0), λ its eigenvalue (of several layers, the Ritz values of K_1 in their span), which denoises
        better than keeping or dropping it; ("ridge", t) is λ/(λ + t), ("firm", t) max(1 - (t/λ)², 0). None keeps all.
        `drkm.select` and `drkm.denoise` choose it.
    learn_bandwidth : bool, default=False
        Minimise the energy over the bandwidths too, as the paper does. It is ill-posed: see docs/model.md.
    tol : float, default=1e-6
        Largest stationarity, ‖G - H sym(HᵀG)‖/‖G‖: the first iteration that reaches it is the last one. Codes of a
        layer of small energy are less exact than that; `summary()` says where they are off by a tenth or more.
    max_iter : int, default=1000
        Largest number of iterations per start; Algorithm 1 has a schedule of its own (`drkm.solvers.Penalty`).
    max_seconds : float, optional
        Largest time per start.
    gram : str or Strategy, default="auto"
        How kernel matrices are formed: "dense" stores the first one, "tiled" keeps what fits into memory and
        recomputes the rest, "fused" is for NVIDIA GPUs: it stores the first one if it fits and computes the others in
        one Triton pass. "auto" takes the fastest that fits and says so in the log and in `summary()`.
        "nystroem" and "fourier" replace kernels by explicit features, and "sharded" shares the samples out over the
        processes of `torch.distributed`, of which each passes its own rows to `fit` (docs/scaling-sharded.md).
        A fit that does not fit into memory raises `drkm.gram.NotEnoughMemory`, a MemoryError, before it starts.
    device : str or torch.device, default="auto"
        "auto" is the device of a torch tensor, else a GPU for 2,000 samples and more where there is one, else the CPU.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of the training; "auto" is float64 on a CPU and float32 on a GPU.
    checkpoint : path or Checkpoint, optional
        File that keeps the state of a long fit, so that one that was killed, interrupted or out of `max_seconds` goes
        on where it was.
    callbacks : callable or sequence of callables, default=()
        Called with every entry of the history; one that returns True stops the fit.
    random_state : int, RandomState instance or None, default=None
        Seed of random starts. The default start is deterministic, and so is the whole fit with it.
    verbose : int, default=0
        Whether to show a progress bar, and the choice of `gram` with its cost.

    Attributes
    ----------
    codes_ : array of shape (n_samples, S)
        Codes of the training samples, all layers side by side.
    layer_slices_ : tuple of slice
        Columns of each layer.
    objective_, feasibility_, stationarity_ : float
        J, ‖HᵀH - I‖_F and ‖G - H sym(HᵀG)‖_F/‖G‖_F.
    converged_ : bool
        Whether the tolerance was reached.
    n_iter_ : int
        Iterations of the start that was kept.
    history_ : list of dict
        Objective, stationarity, feasibility and seconds of every iteration; of a model that was read from a file, of
        some of them if they were many.
    kernels_ : tuple of Kernel
        Kernels with their bandwidths as numbers.
    eta_ : tuple of float
        η_l of each layer as numbers.
    multipliers_ : array of shape (S, S)
        Lagrange multipliers Λ of HᵀH = I.
    eigenvalues_ : list of arrays
        For each layer the diagonal of H_lᵀK_lH_l: the eigenvalues of kernel PCA for one layer.
    approximation_errors_ : list of float or None
        For each layer an estimate of the relative error of an approximate kernel: the part of the trace that Nyström
        features miss, or the root mean square error of kernel values by Fourier features; None for an exact kernel.
    n_features_in_, feature_names_in_
        Number and names of the features seen by `fit`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from drkm import ConstrDRKM
    >>> X = load_digits().data[:300] / 16
    >>> model = ConstrDRKM(n_components=(10, 5)).fit(X)
    >>> model.transform(X[:2]).shape
    (2, 15)
    """

    def __init__(
        self,
        n_components: int | Sequence[int] = (10, 5),
        *,
        kernel: str | Kernel | Sequence[str | Kernel] = "rbf",
        sigma2: float | str | Sequence[float | str | None] | None = None,
        center: bool = False,
        eta: float | Sequence[float] | str = "auto",
        lam: float | Sequence[float] = 1.0,
        init: Any = "kpca",
        n_init: int = 1,
        solver: Any = "auto",
        axes: str | None = "ritz",
        encoder: str = "stationary",
        shrink: float | tuple[str, float] | None = None,
        learn_bandwidth: bool = False,
        tol: float = 1e-6,
        max_iter: int = 1000,
        max_seconds: float | None = None,
        gram: Any = "auto",
        device: Any = "auto",
        dtype: Any = "auto",
        checkpoint: Any = None,
        callbacks: Any = (),
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.sigma2 = sigma2
        self.center = center
        self.eta = eta
        self.lam = lam
        self.init = init
        self.n_init = n_init
        self.solver = solver
        self.axes = axes
        self.encoder = encoder
        self.shrink = shrink
        self.learn_bandwidth = learn_bandwidth
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.gram = gram
        self.device = device
        self.dtype = dtype
        self.checkpoint = checkpoint
        self.callbacks = callbacks
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(
        cls,
        n_components: int | Sequence[int],
        sigma2: float | Sequence[float],
        *,
        gamma: float = 1.0,
        init: str = "random",
        learn_bandwidth: bool = True,
        random_state: Any = None,
        **more: Any,
    ) -> ConstrDRKM:
        """Return an estimator with every choice as published, for reproduction.

        Algorithm 1 (quadratic penalty and Adam), RBF kernels, bandwidths learned with the codes, the paper's formulas
        for new points, no choice of axes.

        Parameters
        ----------
        n_components : int or sequence of int
        sigma2 : float or sequence of float
            σ² of every layer, where learning begins.
        gamma : float
            γ = η/λ, as η = γ and λ = 1.
        init : {"random", "kpca"}
            The two starts of the paper; "kpca" here solves a layer in the complement of those below.
        learn_bandwidth : bool
            As in the disentanglement experiments; the denoising experiments select bandwidths instead.
        random_state : int, RandomState instance or None
        **more
            Further parameters of the estimator.
        """
        published = {
            "kernel": "rbf",
            # A wrong one is refused here and not by the first fit.
            "sigma2": parameters.bandwidths(sigma2, len(parameters.layer_sizes(n_components, sys.maxsize))),
            "eta": gamma,
            "lam": 1.0,
            "init": init,
            "solver": "penalty",
            "axes": None,
            "encoder": "projection",
            "learn_bandwidth": learn_bandwidth,
            "random_state": random_state,
        }
        return cls(n_components, **{**published, **more})

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, with `deep` also those of kernels, solver and gram that are objects.

        Names are as in `kernel__sigma2`, with one kernel per layer `kernel__layer1__sigma2`, `solver__memory`,
        `gram__m`.
        """
        params = super().get_params(deep=False)
        inner = [nested.names(name, params[name]) for name in nested.PARTS] if deep else []
        return params | {name: value for found in inner for name, value in found.items()}

    def set_params(self, **params: Any) -> ConstrDRKM:
        """Set parameters by the names of `get_params`; a kernel, solver or gram object is replaced, never changed."""
        inner = [name for name in params if name.startswith(tuple(f"{part}__" for part in nested.PARTS))]
        super().set_params(**{name: value for name, value in params.items() if name not in inner})
        # Sorted, an object comes before what is inside it.
        for full in sorted(inner):
            name, _, path = full.partition("__")
            setattr(self, name, nested.changed(name, getattr(self, name), path, params[full]))
        return self

    def fit(self, X: Any, y: Any = None) -> ConstrDRKM:
        """Train the model on the rows of X.

        Besides arrays, frames and tensors, X may be a `numpy.memmap`, an HDF5 dataset or the path of a .npy or HDF5
        file ("file.h5:name"): with gram="tiled" it is read in tiles and never held as a whole.
        """
        began = time.perf_counter()
        with inputs.restored_on_failure(self):
            strategy, given = parameters.strategy(self.gram), self.get_params(deep=False)
            samples, checkpoint = self._samples(X, strategy), parameters.checkpoint(self.checkpoint)
            if strategy.shares:
                samples = in_memory(samples)
            named = {name: value for name, value in given.items() if name not in INCIDENTAL}
            common = partial(settings, {name: value for name, value in named.items() if name not in OWN})
            with strategy.sharing(samples, common, checkpoint.path if checkpoint else None):
                plan = parameters.plan_of(given, collectives.samples(len(samples)), strategy)
                if checkpoint:
                    checkpoint.bind(fingerprint(samples, named), plan.solver, dimensions(samples, plan))
                    began -= checkpoint.spent()
                with progress_shown(plan, began) if self.verbose else nullcontext(plan) as told:
                    fitted, first = train(samples, told, checkpoint)
                # A model that has all samples needs no other process.
                with nullcontext() if fitted.own is None else collectives.shared(None):
                    self._set_fitted(replace(fitted, seconds=time.perf_counter() - began), first, X)
                names = getattr(self, "feature_names_in_", None)
                complaints = strange_data.complaints(fitted.kernels[0], samples, fitted.center, names)
        for complaint in complaints:
            warnings.warn(complaint, strange_data.StrangeDataWarning, stacklevel=2)
        if doubt := doubt_of_convergence(self.fitted_):
            warnings.warn(doubt, ConvergenceWarning, stacklevel=2)
        return self

    def _samples(self, X: Any, strategy: Strategy) -> Tensor | Rows:
        """Return the samples of a fit, checked, in its precision and on its device; of a shared one, those at hand."""
        try:
            samples = inputs.read(self, X, reset=True, least=1 if strategy.shares else 2)
            device = parameters.device(self.device, X.device if isinstance(X, Tensor) else None, len(samples))
            return inputs.place(samples, X, parameters.dtype(self.dtype, device), device)
        except Exception:
            strategy.withdraw()
            raise

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Train the model on the rows of X and return their codes."""
        # A copy: what follows in a pipeline may change it in place.
        return inputs.write(self.fit(X, y, **fit_params)._inference.own_codes.clone(), X, self.get_feature_names_out())

    def summary(self) -> str:
        """Return what was fitted as text, one line per layer, then convergence, time, memory and what to look out for.

        A line has the components of the layer, its effective sample size, its kernel and its part of the energy J, and
        the eigenvalues of H_lᵀK_lH_l with their share of the trace of K_l.
        """
        check_is_fitted(self)
        return summarise(self.fitted_, self._inference.undetermined)

    def save(self, path: str | os.PathLike[str], *, preparation: Preparation | None = None) -> None:
        """Write the fitted model to one safetensors file; `drkm.load` reads it.

        The file holds the samples, from which pre-images begin; a model trained with `gram=drkm.gram.Nystroem(...)`
        needs its landmarks alone and is written without them, unless a sample has fewer features than the model has
        components. Of a history that is long beside the samples the file holds some entries, with the last.

        Where processes share the samples all of them must call this: the first one gathers what the file holds and
        writes it, as if it had held all samples.

        `preparation` is what was done to the data before the model saw them, which the command line keeps in the file.
        """
        check_is_fitted(self)
        fitted, kind = self.fitted_, "torch" if isinstance(self.codes_, Tensor) else "numpy"
        names = [str(name) for name in getattr(self, "feature_names_in_", [])]
        saved = model_file.SavedModel(
            fitted, self._chosen, names, "pandas" if self._fitted_to_frame else kind, preparation
        )
        with fitted.strategy.sharing(fitted.X, lambda: "save", None) if fitted.is_of_a_group else nullcontext():
            model_file.write(path, saved)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the codes: layer1_0, layer1_1, …"""
        check_is_fitted(self)
        names = [f"layer{layer}_{i}" for layer, size in enumerate(self.fitted_.sizes, 1) for i in range(size)]
        return np.asarray(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: a precomputed kernel makes the input pairwise."""
        tags = super().__sklearn_tags__()
        first: Any = self.kernel
        if checks.is_list(first):
            first = next(iter(first), None)
        tags.input_tags.pairwise = first == "precomputed" or getattr(first, "is_given", False) is True
        return tags

    def _set_fitted(self, fitted: FittedModel, first: Gram | None, like: Any) -> None:
        """Set what a fit learns; `like` is the kind of array that the attributes are given as."""
        result = fitted.result
        self.fitted_ = fitted
        # For files: what is set after a fit is for the next one.
        self._chosen = {k: v for k, v in self.get_params(deep=False).items() if k not in ("callbacks", "checkpoint")}
        self._inference = Inference(fitted, first)
        # Attributes of a model are no samples: where these are a frame, they are arrays.
        self._fitted_to_frame = inputs.is_frame(like)
        kind = like if isinstance(like, Tensor) else None
        self.codes_ = inputs.write(self._inference.own_codes.clone(), kind)
        self.layer_slices_ = fitted.slices
        self.objective_ = result.objective
        self.feasibility_ = result.feasibility
        self.stationarity_ = result.stationarity
        self.converged_ = result.converged
        # A start that needs no step was checked all the same; scikit-learn expects one iteration at least.
        self.n_iter_ = max(1, result.n_iter)
        self.history_ = result.history
        self.kernels_ = fitted.kernels
        self.eta_ = fitted.eta
        self.multipliers_ = inputs.write(fitted.multipliers_on_axes, kind)
        self.eigenvalues_ = [inputs.write(values.clone(), kind) for values in fitted.eigenvalues]
        self.approximation_errors_ = list(fitted.errors)

    def __getstate__(self) -> dict[str, Any]:
        # What follows from the record is made again: a pickle is about as large as a file.
        made = ("_inference", "codes_", "kernels_", "history_", "multipliers_")
        return {name: value for name, value in super().__getstate__().items() if name not in made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "fitted_" in state:
            self._inference = Inference(self.fitted_)
            like = self.eigenvalues_[0]
            self.codes_ = inputs.write(self._inference.own_codes.clone(), like)
            self.multipliers_ = inputs.write(self.fitted_.multipliers_on_axes, like)
            self.kernels_, self.history_ = self.fitted_.kernels, self.fitted_.result.history


def load(
    path: str | os.PathLike[str],
    *,
    device: str | torch.device = "cpu",
    feature_maps: Mapping[int, Any] | None = None,
) -> Any:
    """Read a model that `ConstrDRKM.save` or `KernelPCA.save` wrote, and return one of its class.

    One that `drkm fit` wrote takes samples as its data were after they had been scaled; `load` warns where they were,
    and `drkm.estimator.load_prepared` returns the model with what is to be done to data before it sees them.

    Parameters
    ----------
    path : str or path
    device : str or torch.device, default="cpu"
        Where the model is to live; it need not be where it was trained.
    feature_maps : mapping from layer (counted from 1) to callable, optional
        The maps behind `FeatureMap` kernels, whose code no file holds; a module gets its trained numbers back.
    """
    saved = model_file.read(path, device, feature_maps)
    if isinstance(saved, SavedComponents):
        with model_file.refusals_named(path):
            return KernelPCA.from_saved(saved)
    model, preparation = _prepared(saved)
    if preparation.changes_values:
        warnings.warn(
            f"path: {path} holds a model of prepared data ({preparation.describe()}) and takes none but such: use "
            "model, preparation = drkm.estimator.load_prepared(path) and give it preparation.apply(X)",
            strange_data.StrangeDataWarning,
            stacklevel=2,
        )
    return model


def load_prepared(
    path: str | os.PathLike[str],
    *,
    device: str | torch.device = "cpu",
    feature_maps: Mapping[int, Any] | None = None,
) -> tuple[ConstrDRKM, Preparation]:
    """Read a model as `load` does, and what is to be done to data before it sees them."""
    saved = model_file.read(path, device, feature_maps)
    if isinstance(saved, SavedComponents):
        raise ValueError(f"path: {path} holds a KernelPCA, which no command takes: use drkm.load(path) in Python")
    return _prepared(saved)


def _prepared(saved: SavedModel) -> tuple[ConstrDRKM, Preparation]:
    model = ConstrDRKM(**saved.parameters)
    model.n_features_in_ = saved.fitted.X.shape[1]
    if saved.feature_names:
        model.feature_names_in_ = np.asarray(saved.feature_names, dtype=object)
    model._set_fitted(saved.fitted, None, saved.fitted.H if saved.kind_of_array == "torch" else None)
    model._fitted_to_frame = saved.kind_of_array == "pandas"
    return model, saved.preparation or Preparation()
