"""`ConstrDRKM`, the scikit-learn estimator."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from drkm import inputs, strange_data
from drkm.distributed import collectives
from drkm.files.rows import Rows, in_memory
from drkm.fitted import FittedModel
from drkm.gram import Gram, Strategy
from drkm.inference.inference import Inference
from drkm.inference.noise_warning import NoiseWarning
from drkm.inference.point_methods import PointMethods
from drkm.inputs.preparation import Preparation
from drkm.kernels import Kernel
from drkm.persistence import model_file
from drkm.persistence.model_file import SavedModel
from drkm.summary import doubt_of_convergence
from drkm.summary import summary as summarise
from drkm.training import dimensions, parameters, train
from drkm.training.checkpoint.fingerprint import fingerprint, settings
from drkm.training.progress import progress_shown
from drkm.validation import checks
from drkm.validation.callers import level_of_caller
from drkm.validation.nested import NestedParameters

__all__ = ["ConstrDRKM", "NoiseWarning"]

#: parameters that do not change the result of a fit, only how it is reached or shown
INCIDENTAL = ("callbacks", "checkpoint", "max_seconds", "verbose", "device", "shrink")
#: parameters that may differ between the processes that share the samples: each passes its own rows of a start, and
#: they agree on one random state
OWN = ("init", "random_state")


class ConstrDRKM(PointMethods, NestedParameters):
    """Deep restricted kernel machine with orthogonality constraints.

    The model stacks kernel PCA layers and trains them end to end. Layer l computes `n_components[l]` codes of every
    sample from the codes of the layer below, and the codes of all layers are orthonormal, HᵀH = I. Training minimises
    the energy J(H) = -Σ_l 1/(2η_l) tr(H_lᵀ K_l H_l), with K_l the kernel matrix of the codes of layer l-1.

    Methods return the type that they are given: array, data frame or tensor. Methods that take no data, like `sample`,
    return the type that `fit` was given.

    Parameters
    ----------
    n_components : int or sequence of int, default=(10, 5)
        Number of components of each layer; an integer means one layer, which is kernel PCA.
    kernel : str, Kernel or sequence of these, default="rbf"
        A name, a `drkm.kernels` object, or one of those per layer. "rbf" uses the median bandwidth in layer 1 and the
        scale of the codes above. Grid searches can set parameters of kernel objects: `kernel__layer1__sigma2`.
    sigma2 : float, str, None or sequence of these, default=None
        Bandwidth σ² of kernels given by name: one for all layers or one per layer, each a number or a rule, "median"
        (layer 1) or "scale". None or "auto" uses the default rule of the kernel. Codes are far smaller than samples, so
        that a number for layer 1 suits no other: sigma2=(10, None). Kernel objects have their own.
    center : bool, default=False
        Centre every layer in its feature space.
    eta : "auto", float or sequence of float, default="auto"
        η_l of each layer, which has the weight 1/η_l. Only the ratios between layers change the solution; a common
        factor does not. "auto" makes the deep layers light enough for the layer below to keep the directions that are
        recovered on another draw of samples: `eta_` has the values, docs/model.md the rule. 1.0 is the paper's choice,
        with which layer 1 has a small effective sample size.
    lam : float or sequence of float, default=1.0
        λ_l of the paper. Its term is constant on the manifold, so it matters only for solver="penalty" and
        encoder="projection".
    init : {"kpca", "random", "orthogonal"} or array of shape (n_samples, S), default="kpca"
        Starting point of the training.
    n_init : int, default=1
        Number of starts; the one with the lowest energy is kept. The second start is `init` after some gradient steps,
        further ones are random points around it. Starts that are behind the best one halfway are abandoned
        (docs/solvers.md).
    solver : str or Solver, default="auto"
        "auto", "lbfgs", "trust-region", "projected-gradient", "penalty" (Algorithm 1 of the paper),
        "augmented-lagrangian", or a `drkm.solvers` object. "auto" is an eigensolver for one layer, else "lbfgs".
    axes : {"ritz", "varimax", "ica", None}, default="ritz"
        Basis in which the codes of each layer are reported; the energy does not depend on it. The exception is a layer
        below a feature map, whose basis is the one that the map sees.
    encoder : {"stationary", "projection"}, default="stationary"
        How codes of new points are computed: from the stationarity conditions of the fit, or by the paper's formulas.
    shrink : float, pair of str and float or None, default=None
        How `denoise`, `inverse_transform`, `traverse` and `sample` weight the components. A number t gives each the
        weight max(1 - t/λ, 0), where λ is its eigenvalue (for several layers, the Ritz values of K_1 in their span);
        this denoises better than keeping or dropping components. ("ridge", t) is λ/(λ + t), ("firm", t) is
        max(1 - (t/λ)², 0) and ("hard", t) keeps components with λ > t. None gives all components the weight 1.
        `drkm.select` and `drkm.denoise` choose it.
    learn_bandwidth : bool, default=False
        Minimise the energy over the bandwidths too, as the paper does. The problem is ill-posed: see docs/model.md.
    tol : float, default=1e-6
        Tolerance for the stationarity ‖G - H sym(HᵀG)‖/‖G‖; training stops at the first iteration that reaches it.
        Codes of a layer with a small energy are less accurate; `summary()` says where they are off by a tenth or more.
    max_iter : int, default=1000
        Maximum number of iterations per start, and per round if kernels are learned in rounds between which the
        solver runs; Algorithm 1 has a schedule of its own (`drkm.solvers.Penalty`).
    max_seconds : float, optional
        Maximum time per start.
    gram : str or Strategy, default="auto"
        How kernel matrices are formed. "dense" stores the one of layer 1. "tiled" keeps as much of one half of it as
        fits into memory, and recomputes the rest. "fused" is for NVIDIA GPUs: it recomputes the matrix of layer 1 on
        tensor cores, or stores it if that is faster, and computes the others in one Triton pass. "auto" chooses the
        fastest exact one that fits and reports it in the log and in `summary()`.
        "nystroem" and "fourier" replace kernels by explicit features. "sharded" distributes the samples over the
        processes of `torch.distributed`, each of which passes its own rows to `fit` (docs/scaling-sharded.md).
        A fit that needs more than the available memory raises `drkm.gram.NotEnoughMemory` before it starts.
    device : str or torch.device, default="auto"
        "auto" is the device of X if it is a tensor; otherwise a GPU, if there is one, from 2,000 samples, else the CPU.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of the training; "auto" is float64 on a CPU and float32 on a GPU.
    checkpoint : path or Checkpoint, optional
        File that keeps the state of a long fit. A fit that was killed, interrupted or stopped by `max_seconds` resumes
        from it.
    callbacks : callable or sequence of callables, default=()
        Called with every entry of the history; a callback that returns True stops the fit.
    random_state : int, RandomState instance or None, default=None
        Seed of random starts. The default start is deterministic, and so is the whole fit with it.
    verbose : int, default=0
        If positive, show a progress bar, and the chosen `gram` with its cost.

    Attributes
    ----------
    codes_ : array of shape (n_samples, S)
        Codes of the training samples, all layers side by side.
    layer_slices_ : tuple of slice
        Columns of each layer.
    objective_, feasibility_, stationarity_ : float
        J, ‖HᵀH - I‖_F and ‖G - H sym(HᵀG)‖_F/‖G‖_F.
    converged_ : bool
        Whether stationarity and feasibility reached `tol`.
    n_iter_ : int
        Number of iterations of the start that was kept; of its last round if kernels were learned in rounds.
    history_ : list of dict
        Objective, stationarity, feasibility and seconds of every one of these iterations; the seconds include earlier
        rounds. Model files keep only some entries of a long history.
    kernels_ : tuple of Kernel
        Kernels, with their bandwidths as numbers.
    eta_ : tuple of float
        η_l of each layer, as numbers.
    multipliers_ : array of shape (S, S)
        Lagrange multipliers Λ of HᵀH = I.
    eigenvalues_ : list of arrays
        For each layer, the diagonal of H_lᵀK_lH_l. With one layer these are the eigenvalues of kernel PCA.
    approximation_errors_ : list of float or None
        For each layer, an estimate of the relative error of an approximate kernel: the part of the trace that Nyström
        features miss, or the root mean square error of the kernel values of Fourier features. None for exact kernels.
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
        """Return an estimator with all settings as published, to reproduce the paper.

        It uses Algorithm 1 (quadratic penalty and Adam), RBF kernels, bandwidths learned together with the codes, the
        paper's formulas for new points, and no particular axes.

        Parameters
        ----------
        n_components : int or sequence of int
        sigma2 : float or sequence of float
            σ² of every layer; the initial value if bandwidths are learned.
        gamma : float
            γ = η/λ, set as η = γ and λ = 1.
        init : {"random", "kpca"}
            The two starts of the paper; "kpca" solves each layer in the orthogonal complement of the layers below.
        learn_bandwidth : bool
            True as in the disentanglement experiments; the denoising experiments select bandwidths instead.
        random_state : int, RandomState instance or None
        **more
            Further parameters of the estimator.
        """
        published = {
            "kernel": "rbf",
            # Refuse a wrong value here and not in the first fit.
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

    def fit(self, X: Any, y: Any = None) -> ConstrDRKM:
        """Train the model on the rows of X.

        Besides an array, data frame or tensor, X may be a `numpy.memmap`, an HDF5 dataset or the path of a .npy or HDF5
        file ("file.h5:name"). With gram="tiled" it is read in tiles and never loaded as a whole.
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
                with progress_shown(plan, began) if self.verbose else nullcontext(plan) as reporting:
                    fitted, first = train(samples, reporting, checkpoint)
                # A model that holds all samples needs no other process.
                with nullcontext() if fitted.own is None else collectives.shared(None):
                    self._set_fitted(replace(fitted, seconds=time.perf_counter() - began), first, X)
                names = getattr(self, "feature_names_in_", None)
                complaints = strange_data.complaints(fitted.kernels[0], samples, fitted.center, names)
                if checkpoint:
                    checkpoint.finish_fit()
        for complaint in complaints:
            warnings.warn(complaint, strange_data.StrangeDataWarning, stacklevel=level_of_caller())
        if doubt := doubt_of_convergence(self.fitted_):
            warnings.warn(doubt, ConvergenceWarning, stacklevel=level_of_caller())
        return self

    def _samples(self, X: Any, strategy: Strategy) -> Tensor | Rows:
        """Validate X, or the rows of this process, and return it in the precision and on the device of the fit."""
        try:
            samples = inputs.read(self, X, reset=True, least=1 if strategy.shares else 2)
            device = parameters.device(self.device, X.device if isinstance(X, Tensor) else None, len(samples))
            return inputs.place(samples, X, parameters.dtype(self.dtype, device), device)
        except Exception:
            strategy.withdraw()
            raise

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Train the model on the rows of X and return their codes."""
        # A copy, because the next step of a pipeline may change it in place.
        return inputs.write(self.fit(X, y, **fit_params)._inference.own_codes.clone(), X, self.get_feature_names_out())

    def summary(self) -> str:
        """Describe the fitted model as text: one line per layer, then convergence, time, memory and any caveats.

        The line of a layer has its number of components, its effective sample size, its kernel, its part of the energy
        J, and the eigenvalues of H_lᵀK_lH_l with their share of the trace of K_l.
        """
        check_is_fitted(self)
        return summarise(self.fitted_, self._inference.undetermined)

    def save(self, path: str | os.PathLike[str], *, preparation: Preparation | None = None) -> None:
        """Write the fitted model to one safetensors file; `drkm.load` reads it.

        The file holds the samples, because pre-images need them. A model trained with `gram=drkm.gram.Nystroem(...)`
        needs only its landmarks, and its file holds no other samples unless they take less room than what replaces
        them (docs/scaling.md). If the history is long compared with the samples, the file holds only some
        entries and the last.

        If several processes share the samples, all of them must call this method: the first one gathers the model and
        writes it, as if it had held all samples.

        `preparation` describes how the data were prepared before the fit; the command line stores it in the file.
        """
        check_is_fitted(self)
        fitted, kind = self.fitted_, "torch" if isinstance(self.codes_, Tensor) else "numpy"
        names = [str(name) for name in getattr(self, "feature_names_in_", [])]
        saved = SavedModel(fitted, self._chosen, names, "pandas" if self._fitted_to_frame else kind, preparation)
        with fitted.strategy.sharing(fitted.X, lambda: "save", None) if fitted.is_of_a_group else nullcontext():
            model_file.write(path, saved)

    @classmethod
    def from_saved(cls, saved: SavedModel) -> ConstrDRKM:
        """Rebuild the model of a file."""
        model = cls(**saved.parameters)
        model.n_features_in_ = saved.fitted.X.shape[1]
        if saved.feature_names:
            model.feature_names_in_ = np.asarray(saved.feature_names, dtype=object)
        model._set_fitted(saved.fitted, None, saved.fitted.H if saved.kind_of_array == "torch" else None)
        model._fitted_to_frame = saved.kind_of_array == "pandas"
        return model

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
        """Set the fitted attributes; `like` has the array type that they are returned as."""
        result = fitted.result
        self.fitted_ = fitted
        # For files: parameters that are set after a fit apply to the next one.
        self._chosen = {k: v for k, v in self.get_params(deep=False).items() if k not in ("callbacks", "checkpoint")}
        self._inference = Inference(fitted, first)
        # Attributes have no row names: they are arrays even if the samples are a data frame.
        self._fitted_to_frame = inputs.is_frame(like)
        kind = like if isinstance(like, Tensor) else None
        self.codes_ = inputs.write(self._inference.own_codes.clone(), kind)
        self.layer_slices_ = fitted.slices
        self.objective_ = result.objective
        self.feasibility_ = result.feasibility
        self.stationarity_ = result.stationarity
        self.converged_ = result.converged
        # A start that needs no step was still checked, and scikit-learn expects at least one iteration.
        self.n_iter_ = max(1, result.n_iter)
        self.history_ = result.history
        self.kernels_ = fitted.kernels
        self.eta_ = fitted.eta
        self.multipliers_ = inputs.write(fitted.multipliers_on_axes, kind)
        self.eigenvalues_ = [inputs.write(values.clone(), kind) for values in fitted.eigenvalues]
        self.approximation_errors_ = list(fitted.errors)

    def __getstate__(self) -> dict[str, Any]:
        # Derived attributes are recomputed on loading, so that a pickle is about as large as a model file.
        made = {"_inference", "codes_", "kernels_", "history_", "multipliers_"}
        if "fitted_" in vars(self) and self.fitted_.is_shared:
            # What needs the samples of other processes was computed with them.
            made.remove("_inference")
        return {name: value for name, value in super().__getstate__().items() if name not in made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "fitted_" in state:
            if "_inference" not in state:
                self._inference = Inference(self.fitted_)
            like = self.eigenvalues_[0]
            self.codes_ = inputs.write(self._inference.own_codes.clone(), like)
            self.multipliers_ = inputs.write(self.fitted_.multipliers_on_axes, like)
            self.kernels_, self.history_ = self.fitted_.kernels, self.fitted_.result.history
