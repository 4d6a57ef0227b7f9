"""A fitted β-VAE in one safetensors file: weights as tensors, the rest as JSON metadata."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch

from drkm.baselines._vae_network import VAENetwork
from drkm.files import write_whole

_FORMAT = "drkm.baselines.BetaVAE 1"
_FITTED = (
    "image_shape_",
    "flat_",
    "n_features_in_",
    "n_iter_",
    "best_step_",
    "converged_",
    "seconds_",
    "history_",
)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model; an interrupted write leaves the file that was there before."""
    from safetensors.torch import save as to_bytes

    parameters = model.get_params()
    if not isinstance(parameters["random_state"], int | type(None)):
        # The state of a generator is no parameter to write down; the weights hold what came of it.
        parameters["random_state"] = None
    details = {
        "parameters": {name: _plain(value) for name, value in parameters.items()},
        "fitted": {name: _plain(getattr(model, name)) for name in _FITTED},
    }
    weights = {name: value.contiguous().cpu() for name, value in model.network_.state_dict().items()}
    data = to_bytes(weights, {"format": _FORMAT, "details": json.dumps(details)})
    write_whole(path, lambda file: file.write(data))


def load(kind: type, path: str | os.PathLike[str], device: torch.device) -> Any:
    """Read a model of class ``kind``; whatever is wrong with the file is one sentence that names it."""
    from safetensors import safe_open

    if not Path(path).is_file():
        raise ValueError(f"{path}: no such file")
    try:
        with safe_open(str(path), framework="pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != _FORMAT:
                raise ValueError(f"its format is {metadata.get('format')!r}, expected {_FORMAT!r}")
            details = json.loads(metadata["details"])
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        parameters, fitted = details["parameters"], details["fitted"]
        if parameters["image_shape"] is not None:
            parameters["image_shape"] = tuple(parameters["image_shape"])
        model = kind(**parameters)
        model._check_parameters()
        for name in _FITTED:
            setattr(model, name, fitted[name])
        model.image_shape_ = tuple(model.image_shape_)
        network = VAENetwork(1 if len(model.image_shape_) == 2 else 3, model.n_latents)
        network.load_state_dict(weights)
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: is damaged or not a saved BetaVAE ({reason[:200]})") from error
    model.network_ = network.to(device).eval()
    model.device_ = str(device)
    return model


def _plain(value: Any) -> Any:
    """Return numpy scalars as Python ones, so that JSON takes them."""
    return value.item() if hasattr(value, "item") else value
