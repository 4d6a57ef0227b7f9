"""`drkm.load`: one function for every file that a model writes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from drkm.files import container
from drkm.serving import projection

if TYPE_CHECKING:
    import torch


def load(
    path: str | os.PathLike[str],
    *,
    device: str | torch.device = "cpu",
    feature_maps: Mapping[int, Any] | None = None,
) -> Any:
    """Load what `save` wrote: a `ConstrDRKM`, a `KernelPCA` or, from `to_numpy()`, a `drkm.serving.Projection`.

    Projections are loaded with numpy alone; a process that uses no other model starts without torch and scikit-learn.

    A model that `drkm fit` trained on scaled data expects data that are scaled in the same way. `load` warns of such a
    model; `drkm.estimator.load_prepared` returns it together with the preparation to apply to data.

    Parameters
    ----------
    path : str or path
    device : str or torch.device, default="cpu"
        Device to load the model to; it need not be the one that the model was trained on. Projections are on the CPU.
    feature_maps : mapping from layer (counted from 1) to callable, optional
        The maps of `FeatureMap` kernels, because files hold no code. A module gets its trained parameters back.
    """
    if container.kind_of(path) != projection.KIND:
        # Only here: importing torch and scikit-learn takes ten times as long as loading a projection.
        from drkm import estimator

        return estimator.load(path, device=device, feature_maps=feature_maps)
    if str(device) != "cpu":
        raise ValueError(f"device: {os.fspath(path)} holds a projection, which is computed on the CPU, got {device!r}")
    if feature_maps:
        raise ValueError(f"feature_maps: {os.fspath(path)} holds a projection, which has no feature maps")
    return projection.load(path)
