"""`drkm.load`: one function for every file that a model writes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from drkm.files import container
from drkm.persistence import kernel_pca_file
from drkm.persistence.model_format import KIND, VERSION, errors_name_file
from drkm.serving import projection
from drkm.validation.callers import level_of_caller

if TYPE_CHECKING:
    import torch

    from drkm.estimator import ConstrDRKM
    from drkm.inputs.preparation import Preparation


def load(
    path: str | os.PathLike[str],
    *,
    device: str | torch.device = "cpu",
    feature_maps: Mapping[int, Any] | None = None,
) -> Any:
    """Load what `save` wrote: a `ConstrDRKM`, a `KernelPCA` or, from `to_numpy()`, a `drkm.serving.Projection`.

    Projections are loaded with numpy alone; a process that uses no other model starts without torch and scikit-learn.
    A `KernelPCA` of an array, with "rbf", "linear", "cosine" or "poly" and no approximation, is loaded and transforms
    points without torch.

    A model that `drkm fit` trained on scaled data expects data that are scaled in the same way. `load` warns of such a
    model; `drkm.loading.load_prepared` returns it together with the preparation to apply to data.

    Parameters
    ----------
    path : str or path
    device : str or torch.device, default="cpu"
        Device to load the model to; it need not be the one that the model was trained on. Projections are on the CPU.
    feature_maps : mapping from layer (counted from 1) to callable, optional
        The maps of `FeatureMap` kernels, because files hold no code. A module gets its trained parameters back.
    """
    if container.kind_of(path) != projection.KIND:
        model, preparation = _model(path, device, feature_maps)
        if preparation is not None and preparation.changes_values:
            _tell_prepared(path, preparation)
        return model
    if str(device) != "cpu":
        raise ValueError(f"device: {os.fspath(path)} holds a projection, which is computed on the CPU, got {device!r}")
    if feature_maps:
        raise ValueError(f"feature_maps: {os.fspath(path)} holds a projection, which has no feature maps")
    return projection.load(path)


def load_prepared(path: str | os.PathLike[str], **options: Any) -> tuple[ConstrDRKM, Preparation]:
    """Load a `ConstrDRKM` as `load` does, together with the preparation to apply to data before they are passed to it.

    Options are those of `load`.
    """
    model, preparation = _model(path, **options)
    if preparation is None:
        raise ValueError(f"path: {path} holds a KernelPCA, which no command supports: use drkm.load(path) in Python")
    return model, preparation


def _model(
    path: str | os.PathLike[str],
    device: str | torch.device = "cpu",
    feature_maps: Mapping[int, Any] | None = None,
) -> tuple[Any, Preparation | None]:
    """Return the model of a file with the preparation of its data, None for a `KernelPCA`."""
    if device != "cpu":
        from drkm.training import parameters

        device = parameters.device(device, None, 0)
    stored, header = container.read_stored(path, KIND, VERSION)
    # Imported only here: torch and scikit-learn each take several times as long as loading a projection.
    if "estimator" in header:
        from drkm.kernel_pca import KernelPCA

        with errors_name_file(path):
            return KernelPCA.from_saved(kernel_pca_file.rebuilt(stored, header, feature_maps or {}, device)), None
    from drkm.estimator import ConstrDRKM
    from drkm.inputs.preparation import Preparation
    from drkm.persistence import model_file

    with errors_name_file(path):
        saved = model_file.rebuilt(stored, header, feature_maps or {}, device)
    return ConstrDRKM.from_saved(saved), saved.preparation or Preparation()


def _tell_prepared(path: str | os.PathLike[str], preparation: Preparation) -> None:
    from drkm.strange_data import StrangeDataWarning

    warnings.warn(
        f"path: {path} holds a model of prepared data ({preparation.describe()}) and expects data prepared in the "
        "same way: use model, preparation = drkm.loading.load_prepared(path) and pass it preparation.apply(X)",
        StrangeDataWarning,
        stacklevel=level_of_caller(),
    )
