"""The estimator: parameters in, fitted attributes out."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from drkm import inputs, strange_data
from drkm.distributed import collectives
from drkm.files.rows import Rows, in_memory
from drkm.fitted import FittedModel
from drkm.gram import Gram
from drkm.inference import passing
from drkm.inference.encoder import Encoding
from drkm.inference.inference import Inference
from drkm.inference.kernel_projection import ProjectionModule
from drkm.inference.preimage import PreImage
from drkm.inputs.preparation import Preparation
from drkm.kernels import Kernel
from drkm.persistence import model_file
from drkm.problem.shrinkage import Shrinkage
from drkm.summary import faintness
from drkm.summary import summary as summarise
from drkm.training import dimensions, parameters, train
from drkm.training.checkpoint.fingerprint import fingerprint, settings
from drkm.training.progress import progress_shown
from drkm.validation import checks, nested

#: parameters that do not change the result of a fit, only how it is reached or shown
INCIDENTAL = ("callbacks", "checkpoint", "max_seconds", "verbose", "device", "shrink")
#: parameters that processes which share the samples may have of their own: rows of a start, and a random state that
#: they then agree on
OWN = ("init", "random_state")
#: a model that lets this part of small changes pass does not denoise
MOST_NOISE = 0.9


class NoiseWarning(UserWarning):
    """A model that leaves nearly all of the noise was asked to denoise."""


class ConstrDRKM(TransformerMixin, BaseEstimator):
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
        Objective, stationarity, feasibility and seconds of every iteration.
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
        with inputs.features_restored_on_failure(self):
            samples, given = self._samples(X), self.get_params(deep=False)
            strategy, checkpoint = parameters.strategy(self.gram), parameters.checkpoint(self.checkpoint)
            if strategy.shares:
                samples = in_memory(samples)
            named = {name: value for name, value in given.items() if name not in INCIDENTAL}
            common = partial(settings, {name: value for name, value in named.items() if name not in OWN})
            with strategy.sharing(samples, common, checkpoint.path if checkpoint else None):
                plan = parameters.plan_of(given, collectives.samples(len(samples)), strategy)
                if checkpoint:
                    checkpoint.bind(fingerprint(samples, named), plan.solver, dimensions(samples, plan))
                    began -= checkpoint.spent()
                with progress_shown(plan.tol if self.verbose else None) as shown:
                    fitted, first = train(samples, replace(plan, callbacks=(*plan.callbacks, *shown)), checkpoint)
                # A model that has all samples needs no other process.
                with nullcontext() if fitted.own is None else collectives.shared(None):
                    self._set_fitted(replace(fitted, seconds=time.perf_counter() - began), first, X)
                names = getattr(self, "feature_names_in_", None)
                complaints = strange_data.complaints(fitted.kernels[0], samples, fitted.center, names)
        for complaint in complaints:
            warnings.warn(complaint, strange_data.StrangeDataWarning, stacklevel=2)
        if not self.converged_:
            warnings.warn(f"ConstrDRKM {self.fitted_.message}", ConvergenceWarning, stacklevel=2)
        elif doubt := faintness(self.fitted_) or (self.fitted_.surprising and self.fitted_.unsettled):
            warnings.warn(f"ConstrDRKM: {doubt}", ConvergenceWarning, stacklevel=2)
        return self

    def _samples(self, X: Any) -> Tensor | Rows:
        """Return the samples of a fit, checked, in its precision and on its device."""
        samples = inputs.read(self, X, reset=True, least=2)
        device = parameters.device(self.device, X.device if isinstance(X, Tensor) else None, len(samples))
        return inputs.place(samples, X, parameters.dtype(self.dtype, device), device)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Train the model on the rows of X and return their codes."""
        # A copy: what follows in a pipeline may change it in place.
        return inputs.write(self.fit(X, y, **fit_params)._inference.own_codes.clone(), X, self.get_feature_names_out())

    def transform(self, X: Any, *, out: np.ndarray | None = None) -> Any:
        """Return the codes of the rows of X, all layers side by side.

        Parameters
        ----------
        X : array of shape (m, d), or the path of a .npy or HDF5 file
            New points. A `numpy.memmap`, an HDF5 dataset or a file is read in batches and never held as a whole.
        out : array of shape (m, S), optional
            Where to write the codes, for example a `numpy.memmap`; it is what is returned.
        """
        check_is_fitted(self)
        points = self._read(X)
        target = inputs.target(out, (len(points), self._inference.codes.shape[1]))
        encoding = self._inference.encode(points, out=target)
        # Past scikit-learn's wrapper, to the caller's own line.
        if doubt := encoding.doubt():
            warnings.warn(doubt, ConvergenceWarning, stacklevel=3)
        strange_data.warn_of_strangers(encoding.strange, stacklevel=3)
        return inputs.write(encoding.codes, X, self.get_feature_names_out()) if out is None else out

    def encode(self, X: Any, *, ambiguity: bool = True) -> Encoding:
        """Return the codes of the rows of X with the residual and the ambiguity of each point.

        Returns
        -------
        Encoding
            `codes` (m×S), `residual` (the norm of ψ's gradient relative to its parts), `ambiguous` (whether the second
            nearest training sample leads to other codes), `strange` (whether the point is unlike all training samples).
        """
        check_is_fitted(self)
        codes, *others = self._inference.encode(self._read(X), ambiguity=ambiguity)
        written: list[Any] = [None if part is None else inputs.write(part, X) for part in others]
        return Encoding(inputs.write(codes, X, self.get_feature_names_out()), *written)

    def inverse_transform(self, Z: Any) -> Any:
        """Return data points from their codes.

        They are pre-images of projections on the components of the first layer, whose scores follow from the codes of
        all layers: `inverse_transform(transform(X))` is `denoise(X, components="layer 1")`.

        Parameters
        ----------
        Z : array of shape (m, S)
            Codes of all layers side by side, as `transform` returns them.
        """
        check_is_fitted(self)
        found = self._decode(self._read_codes(Z))
        return inputs.write(found.points, Z, self._features)

    def decoder(self) -> Callable[[Any], Any]:
        """Return `inverse_transform` as a function that is quick for few codes at a time, as sliders ask for.

        It holds what the search for pre-images needs, about three copies of the training samples.
        """
        check_is_fitted(self)
        decode = self._inference.decoder(self._shrinkage)
        return lambda Z: inputs.write(decode(self._read_codes(Z)).points, Z, self._features)

    def denoise(
        self,
        X: Any,
        components: Any = None,
        method: str | None = None,
        *,
        shrink: Any = None,
        out: np.ndarray | None = None,
    ) -> Any:
        """Return the rows of X reconstructed from their projections on a set of components.

        How much noise that removes depends on bandwidth, number of components and `shrink`, and the defaults are not
        chosen for it: `drkm.denoise(X)` chooses all three for X, `drkm.select(X)` returns the model. A model that
        lets nearly all of the noise pass warns of it the first time.

        Parameters
        ----------
        X : array of shape (m, d), or the path of a .npy or HDF5 file
            A `numpy.memmap`, an HDF5 dataset or a file is read in batches and never held as a whole.
        components : None, "layer l" or list of (layer, index)
            Layers count from 1, indices from 0; None means all components of all layers.
        method : {"fixed-point", "gradient", "ridge"}, optional
            How pre-images are found; by default "fixed-point" for kernels of distances and "gradient" for others.
        shrink : float or pair of str and float, optional
            How components are weighed, as the parameter of the same name, which it replaces here; 0 keeps all.
        out : array of shape (m, d), optional
            Where to write the points, for example a `numpy.memmap`; it is what is returned.
        """
        found = self._reconstruct(X, components, method, shrink=shrink, out=out)
        strange_data.warn_of_strangers(found.strange, stacklevel=2)
        if shrink is None and self._shrinkage is None and (told := self._noise_passed(X, components, method)):
            warnings.warn(told, NoiseWarning, stacklevel=2)
        return self._written(found, X).points if out is None else out

    def _noise_passed(self, X: Any, components: Any, method: str | None) -> str:
        """Return one sentence, once per model, if most of the noise in X is left by denoising it."""
        points, kernel = self._read(X), self.kernels_[0]
        if self._inference.noise_told or not kernel.is_isotropic or len(points) < passing.LEAST_ROWS:
            return ""
        self._inference.noise_told = True
        columns = parameters.component_columns(components, self.layer_slices_)
        share = passing.share_passed(
            lambda rows: self._inference.reconstruct(rows, columns, method=method).points,
            points[: len(points)],
            kernel.bandwidth**0.5,
        )
        if share < MOST_NOISE:
            return ""
        return (
            f"ConstrDRKM: denoise lets {share:.0%} of small changes pass and removes little noise: its bandwidth and "
            "components were not chosen for that, drkm.denoise(X) and drkm.select(X) choose them"
        )

    def reconstruct(self, X: Any, components: Any = None, method: str | None = None, **options: Any) -> PreImage:
        """Return what `denoise` returns, with the residual in feature space, iterations and convergence of each point.

        Options go to `drkm.inference.preimage`: `shrink` is as in `denoise`, `normalized=False` the paper's projection,
        `start="point"` its start, the point itself; any other start is an array of shape (m, d). Points unlike all
        training samples are marked as `strange`, where `denoise` warns of them.
        """
        return self._written(self._reconstruct(X, components, method, **options), X)

    @staticmethod
    def _written(found: PreImage, X: Any) -> PreImage:
        """Return pre-images as whatever X is."""
        points, *others = vars(found).values()
        written = [inputs.write(part, X) for part in others]
        return PreImage(inputs.write(points, X, getattr(X, "columns", None)), *written)

    def _reconstruct(self, X: Any, components: Any = None, method: str | None = None, **options: Any) -> PreImage:
        """Return pre-images as tensors on the device of the model."""
        check_is_fitted(self)
        points = self._read(X)
        columns = parameters.component_columns(components, self.layer_slices_)
        start, shrink = options.pop("start", None), Shrinkage.of(options.pop("shrink", None))
        if shrink is None and options.get("normalized", True):
            shrink = self._shrinkage
        if isinstance(start, str):
            if start != "point":
                raise ValueError(f'start: expected "point" or an array of points, got {start!r}')
            options["start"] = points
        elif start is not None:
            options["start"] = parameters.array("start", start).to(self._inference.codes)
            if not torch.isfinite(options["start"]).all():
                raise ValueError("start: contains NaN or infinity")
        options["out"] = inputs.target(options.get("out"), (len(points), self.n_features_in_))
        return self._inference.reconstruct(points, columns, method=method, shrink=shrink, **options)

    def _decode(self, codes: Tensor) -> PreImage:
        """Return pre-images of codes, shrunk as the model says."""
        return self._inference.decode(codes, self._shrinkage)

    @property
    def _shrinkage(self) -> Shrinkage | None:
        return Shrinkage.of(self._chosen.get("shrink"))

    def traverse(self, layer: int, index: int, values: Any, base: Any = None) -> Any:
        """Return data along one component: one point for each value of that code.

        Parameters
        ----------
        layer, index : int
            The component; layers count from 1, indices from 0.
        values : sequence of float
            Values of its code. Codes are small, of the order of n^(-1/2): see the column in `codes_`.
        base : int or array of shape (d,), optional
            The point whose other codes are kept: a training sample by its row, or a new point, for example a row of a
            frame; by default the training sample whose codes are nearest to their mean.

        Returns
        -------
        array of shape (len(values), d)
            Of the kind of `base` where that is a point, else of what `fit` got.
        """
        check_is_fitted(self)
        column = parameters.component_columns([(layer, index)], self.layer_slices_, "layer, index")[0]
        grid = parameters.grid("values", values).to(self._inference.codes)
        known = self._inference.encoded_samples()
        if base is None:
            base = int((known - known.mean(dim=0)).norm(dim=1).argmin())
        like = self._like_fit()
        if isinstance(base, int | np.integer) and not isinstance(base, bool):
            if not -len(known) <= base < len(known):
                raise ValueError(f"base: expected a training sample from 0 to {len(known) - 1}, got {base}")
            codes = known[int(base)]
        else:
            like = inputs.as_row(base)
            if tuple(like.shape) != (1, self.n_features_in_):
                got = repr(base) if np.ndim(base) == 0 else "×".join(map(str, np.shape(base))) + " features"
                expected = f"the row of a training sample or one point of {self.n_features_in_} features"
                raise ValueError(f"base: expected {expected}, got {got}")
            encoding = self._inference.encode(self._read(like))
            strange_data.warn_of_strangers(encoding.strange, stacklevel=2)
            codes = encoding.codes[0]
        moved = codes.repeat(len(grid), 1)
        moved[:, column] = grid
        return inputs.write(self._decode(moved).points, like, self._features, same_rows=False)

    def sample(self, n: int = 1, random_state: Any = None) -> Any:
        """Return n new data points: draws from a Gaussian mixture on the codes, mapped back.

        The number of mixture components is chosen by the Bayesian information criterion. Points are of the kind that
        `fit` got.
        """
        check_is_fitted(self)
        checks.integer("n", n, 1)
        drawn = self._inference.density.draw(n, checks.random_state(random_state))
        return inputs.write(self._decode(drawn).points, self._like_fit(), self._features, same_rows=False)

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the mean over rows of the squared distance between a point and its reconstruction.

        Higher is better, and more components nearly always are: to choose their number, see `drkm.select`.
        """
        squares, strange = self._squared_changes(X)
        strange_data.warn_of_strangers(strange, stacklevel=2)
        return -float(squares.mean())

    def score_samples(self, X: Any) -> Any:
        """Return minus the distance between each row of X and its reconstruction, in the units of the data.

        As in scikit-learn, lower is more abnormal; `score` is minus the mean of the squares. A model that has been
        fitted for it, by `drkm.AnomalyDetector` or with `shrink` above 1, also finds strange samples among those it was
        fitted to (docs/anomalies.md).
        """
        return inputs.write(-self._squared_changes(X)[0].sqrt(), X)

    def _squared_changes(self, X: Any) -> tuple[Tensor, Tensor | None]:
        """Return the squared distance between each row and its reconstruction, and which rows are strange."""
        check_is_fitted(self)
        points = self._read(X)
        found = self._reconstruct(X)
        batches = self._inference.batches(len(points))
        return torch.cat([(found.points[rows] - points[rows]).square().sum(dim=1) for rows in batches]), found.strange

    def to_torch(self) -> ProjectionModule:
        """Return `transform` of a one-layer model as a `torch.nn.Module`, which `torch.export` takes.

        Codes of deeper models are found by iteration for every point (docs/model.md) and stay with `transform`.
        """
        check_is_fitted(self)
        return self._inference.projection().module()

    def summary(self) -> str:
        """Return what was fitted as text, one line per layer, then convergence, time, memory and what to look out for.

        A line has the components of the layer, on how many samples they rest (n where all have codes of one length),
        the kernel, the part of the energy J, and the eigenvalues of H_lᵀK_lH_l with their share of the trace of K_l.
        """
        check_is_fitted(self)
        return summarise(self.fitted_, self._inference.undetermined)

    def save(self, path: str | os.PathLike[str], *, preparation: Preparation | None = None) -> None:
        """Write the fitted model to one safetensors file; `drkm.load` reads it.

        The file holds the samples, from which pre-images begin; a model trained with `gram=drkm.gram.Nystroem(...)`
        needs its landmarks alone and is written without them.

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
        rotation = torch.block_diag(*fitted.rotation)
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
        self.multipliers_ = inputs.write(rotation.T @ fitted.multipliers @ rotation, kind)
        self.eigenvalues_ = [inputs.write(values.clone(), kind) for values in fitted.eigenvalues]
        self.approximation_errors_ = list(fitted.errors)

    def __getstate__(self) -> dict[str, Any]:
        # What follows from the record is made again: a pickle is about as large as a file.
        made = ("_inference", "codes_", "kernels_")
        return {name: value for name, value in super().__getstate__().items() if name not in made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "fitted_" in state:
            self._inference = Inference(self.fitted_)
            self.codes_ = inputs.write(self._inference.own_codes.clone(), self.multipliers_)
            self.kernels_ = self.fitted_.kernels

    @property
    def _features(self) -> Sequence[Any]:
        """Names of the columns of data points."""
        return getattr(self, "feature_names_in_", range(self.n_features_in_))

    def _like_fit(self) -> Any:
        """Return something of the kind that `fit` got."""
        return inputs.empty_frame() if self._fitted_to_frame else self.codes_

    def _read(self, X: Any) -> Tensor | Rows:
        """Return new samples in the precision and on the device of the model."""
        return inputs.read(self, X, reset=False).to(
            dtype=self._inference.codes.dtype, device=self._inference.codes.device
        )

    def _read_codes(self, Z: Any) -> Tensor:
        codes = parameters.array("Z", Z)
        names = self.get_feature_names_out()
        # Only where all names are known are they in the wrong order: a frame may have names of its own.
        if inputs.is_frame(Z) and list(Z.columns) != list(names) and set(Z.columns) == set(names):
            raise ValueError(f"Z: expected columns in the order of get_feature_names_out(), got {list(Z.columns)}")
        if codes.ndim != 2 or codes.shape[1] != self._inference.codes.shape[1]:
            shape = "×".join(map(str, codes.shape))
            raise ValueError(f"Z: expected m×{self._inference.codes.shape[1]} codes, got {shape}")
        if not torch.isfinite(codes).all():
            raise ValueError("Z: contains NaN or infinity")
        return codes.to(self._inference.codes)


def load(
    path: str | os.PathLike[str],
    *,
    device: str | torch.device = "cpu",
    feature_maps: Mapping[int, Any] | None = None,
) -> ConstrDRKM:
    """Read a model that `ConstrDRKM.save` wrote.

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
    model, preparation = load_prepared(path, device=device, feature_maps=feature_maps)
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
    model = ConstrDRKM(**saved.parameters)
    model.n_features_in_ = saved.fitted.X.shape[1]
    if saved.feature_names:
        model.feature_names_in_ = np.asarray(saved.feature_names, dtype=object)
    model._set_fitted(saved.fitted, None, saved.fitted.H if saved.kind_of_array == "torch" else None)
    model._fitted_to_frame = saved.kind_of_array == "pandas"
    return model, saved.preparation or Preparation()
