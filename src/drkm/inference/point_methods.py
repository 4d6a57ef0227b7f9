"""The estimator's methods for points and codes, which need nothing but the fitted model."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from drkm import inputs, strange_data
from drkm.files.rows import Rows
from drkm.inference import arguments, noise_warning
from drkm.inference.encoder import Encoding
from drkm.inference.inference import Inference
from drkm.inference.kernel_projection import ProjectionModule
from drkm.inference.preimage import PreImage
from drkm.problem.shrinkage import Shrinkage
from drkm.serving import Projection
from drkm.training import parameters
from drkm.validation import checks
from drkm.validation.callers import level_of_caller
from drkm.wording import dtype_name


class PointMethods(TransformerMixin):
    """Methods from points to codes and back: they validate data and return the type of the input.

    `Inference` does the computation. A subclass sets the attributes declared here in `fit`.
    """

    n_features_in_: int
    layer_slices_: tuple[slice, ...]
    codes_: Any
    _inference: Inference
    _chosen: Mapping[str, Any]
    _fitted_to_frame: bool

    @abstractmethod
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the codes."""

    def transform(self, X: Any, *, out: np.ndarray | None = None) -> Any:
        """Return the codes of the rows of X, all layers side by side.

        Parameters
        ----------
        X : array of shape (m, d), or the path of a .npy or HDF5 file
            New points. A `numpy.memmap`, an HDF5 dataset or a file is read in batches and never loaded as a whole.
        out : array of shape (m, S), optional
            Array to write the codes to, for example a `numpy.memmap`; it is also returned.
        """
        check_is_fitted(self)
        points = self._read(X)
        target = inputs.target(out, (len(points), self._inference.codes.shape[1]))
        encoding = self._inference.encode(points, out=target)
        if doubt := encoding.doubt():
            warnings.warn(doubt, ConvergenceWarning, stacklevel=level_of_caller())
        strange_data.warn_of_strangers(encoding.strange)
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

        The points are pre-images of projections onto the components of the first layer, whose scores follow from the
        codes of all layers: `inverse_transform(transform(X))` equals `denoise(X, components="layer 1")`.

        Parameters
        ----------
        Z : array of shape (m, S)
            Codes of all layers side by side, as `transform` returns them.
        """
        check_is_fitted(self)
        found = self._decode(self._read_codes(Z))
        return inputs.write(found.points, Z, self._features)

    def decoder(self) -> Callable[[Any], Any]:
        """Return `inverse_transform` as a function that is fast for a few codes at a time, for example from sliders.

        It keeps what the search for pre-images needs, about three copies of the training samples.
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
        """Reconstruct the rows of X from their projections onto a set of components.

        How much noise this removes depends on the bandwidth, the number of components and `shrink`, and the defaults
        are not chosen for denoising: `drkm.denoise(X)` chooses all three for X, and `drkm.select(X)` returns the model.
        A model that leaves nearly all of the noise warns the first time.

        Parameters
        ----------
        X : array of shape (m, d), or the path of a .npy or HDF5 file
            A `numpy.memmap`, an HDF5 dataset or a file is read in batches and never loaded as a whole.
        components : None, "layer l" or list of (layer, index)
            Layers count from 1, indices from 0; None means all components of all layers.
        method : {"fixed-point", "gradient", "ridge"}, optional
            How pre-images are found; by default "fixed-point" for kernels of distances and "gradient" for others.
        shrink : float or pair of str and float, optional
            How components are weighted, as the parameter of the same name, which it overrides; 0 gives all the weight
            1.
        out : array of shape (m, d), optional
            Array to write the points to, for example a `numpy.memmap`; it is also returned.
        """
        check_is_fitted(self)
        points, told = self._read(X), ""
        if shrink is None and self._shrinkage is None:
            # Before `out` is written, which may be X.
            columns = parameters.component_columns(components, self.layer_slices_)
            told = noise_warning.noise_warning(self._inference, points, columns, method)
        found = self._reconstruct(points, components, method, shrink=shrink, out=out)
        strange_data.warn_of_strangers(found.strange)
        if told:
            warnings.warn(told, noise_warning.NoiseWarning, stacklevel=level_of_caller())
        return inputs.write(found.points, X, getattr(X, "columns", None)) if out is None else out

    def reconstruct(self, X: Any, components: Any = None, method: str | None = None, **options: Any) -> PreImage:
        """Reconstruct as `denoise` does, with the residual in feature space, iterations and convergence of each point.

        Options go to `drkm.inference.preimage`: `shrink` is as in `denoise`; `normalized=False` is the paper's
        projection; `start="point"` is the paper's start, the point itself, and any other start is an array of shape (m,
        d). Points unlike all training samples are marked as `strange`, where `denoise` would warn.
        """
        check_is_fitted(self)
        points, *others = vars(self._reconstruct(self._read(X), components, method, **options)).values()
        written = [inputs.write(part, X) for part in others]
        return PreImage(inputs.write(points, X, getattr(X, "columns", None)), *written)

    def traverse(self, layer: int, index: int, values: Any, base: Any = None) -> Any:
        """Move a point along one component: return one point per value of that code.

        Parameters
        ----------
        layer, index : int
            The component; layers count from 1, indices from 0.
        values : sequence of float
            Values of the code. Codes are small, of the order of n^(-1/2): see the column in `codes_`.
        base : int or array of shape (d,), optional
            The point that keeps its other codes: a training sample by its row number, or a new point, for example a row
            of a data frame. By default a typical training sample: codes near their mean, and not isolated.

        Returns
        -------
        array of shape (len(values), d)
            Of the type of `base` if that is a point, else of the type that was passed to `fit`.
        """
        check_is_fitted(self)
        column = parameters.component_columns([(layer, index)], self.layer_slices_, "layer, index")[0]
        grid = parameters.grid("values", values).to(self._inference.codes)
        row = arguments.sample_row(base, self._inference)
        if row is not None:
            codes, like = self._inference.encoded_samples[row], self._like_fit()
        else:
            like = arguments.one_point(base, self.n_features_in_)
            encoding = self._inference.encode(self._read(like))
            strange_data.warn_of_strangers(encoding.strange)
            codes = encoding.codes[0]
        moved = codes.repeat(len(grid), 1)
        moved[:, column] = grid
        return inputs.write(self._decode(moved).points, like, self._features, same_rows=False)

    def sample(self, n: int = 1, random_state: Any = None) -> Any:
        """Draw n new data points: codes from a Gaussian mixture, mapped back to data.

        The number of mixture components is chosen by the Bayesian information criterion. Points have the type that was
        passed to `fit`.
        """
        check_is_fitted(self)
        checks.integer("n", n, 1)
        drawn = self._inference.density.draw(n, checks.random_state(random_state))
        return inputs.write(self._decode(drawn).points, self._like_fit(), self._features, same_rows=False)

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the mean squared distance between the rows of X and their reconstructions.

        Higher is better, and more components nearly always score higher: to choose their number, use `drkm.select`.
        """
        squares, strange = self._squared_changes(X)
        strange_data.warn_of_strangers(strange)
        return -float(squares.mean())

    def score_samples(self, X: Any) -> Any:
        """Return minus the distance between each row of X and its reconstruction, in the units of the data.

        As in scikit-learn, lower is more abnormal; `score` is minus the mean of the squares. A model that is fitted for
        it, by `drkm.AnomalyDetector` or with `shrink` above 1, also finds strange samples among its training samples
        (docs/anomalies.md).
        """
        return inputs.write(-self._squared_changes(X)[0].sqrt(), X)

    def to_torch(self) -> ProjectionModule:
        """Return `transform` of a one-layer model as a `torch.nn.Module`, which `torch.export` accepts.

        Codes of deeper models are found by an iteration per point (docs/model.md), which only `transform` supports.
        """
        check_is_fitted(self)
        return self._inference.projection().module()

    def to_numpy(self) -> Projection:
        """Return `transform` of a one-layer model with numpy alone, as a `drkm.serving.Projection`.

        Its file is read and used without torch, so that a process that only transforms points starts at once.
        """
        check_is_fitted(self)
        projection = self._inference.projection()
        return projection.numpy(dtype_name(projection.weights.dtype), getattr(self, "feature_names_in_", ()))

    def _squared_changes(self, X: Any) -> tuple[Tensor, Tensor | None]:
        """Return the squared distance between each row and its reconstruction, and which rows are strange."""
        check_is_fitted(self)
        points = self._read(X)
        found = self._reconstruct(points)
        return self._inference.squared_distances(found.points, points), found.strange

    def _reconstruct(
        self, points: Tensor | Rows, components: Any = None, method: str | None = None, **options: Any
    ) -> PreImage:
        """Return pre-images as tensors on the device of the model."""
        columns = parameters.component_columns(components, self.layer_slices_)
        shrink = Shrinkage.of(options.pop("shrink", None))
        if shrink is None and options.get("normalized", True):
            shrink = self._shrinkage
        if options.get("start") is not None:
            options["start"] = arguments.start(options["start"], points, self._inference.codes)
        options["out"] = inputs.target(options.get("out"), (len(points), self.n_features_in_))
        return self._inference.reconstruct(points, columns, method=method, shrink=shrink, **options)

    def _decode(self, codes: Tensor) -> PreImage:
        """Return pre-images of codes, with the shrinkage of the model."""
        return self._inference.decode(codes, self._shrinkage)

    @property
    def _shrinkage(self) -> Shrinkage | None:
        return Shrinkage.of(self._chosen.get("shrink"))

    @property
    def _features(self) -> Sequence[Any]:
        """Names of the columns of data points."""
        return getattr(self, "feature_names_in_", range(self.n_features_in_))

    def _like_fit(self) -> Any:
        """Return an object of the type that was passed to `fit`."""
        return inputs.empty_frame() if self._fitted_to_frame else self.codes_

    def _read(self, X: Any) -> Tensor | Rows:
        """Return new samples in the precision and on the device of the model."""
        codes = self._inference.codes
        return inputs.read(self, X, reset=False).to(dtype=codes.dtype, device=codes.device)

    def _read_codes(self, Z: Any) -> Tensor:
        return arguments.codes(Z, self.get_feature_names_out(), self._inference.codes)
