"""A fitted β-VAE in one safetensors file: weights as tensors, everything else as JSON."""

from __future__ import annotations

import os
from typing import Any

import torch

from drkm.baselines._vae_network import VAENetwork
from drkm.files import container

KIND, VERSION = "BetaVAE", 1
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
    parameters = model.get_params()
    if not isinstance(parameters["random_state"], int | type(None)):
        # The state of a generator is not stored; the weights are its result.
        parameters["random_state"] = None
    fitted = {name: getattr(model, name) for name in _FITTED}
    header = {"kind": KIND, "version": VERSION, "parameters": parameters, "fitted": fitted}
    container.write(path, model.network_.state_dict(), header)


def load(kind: type, path: str | os.PathLike[str], device: torch.device) -> Any:
    """Read a model of class `kind`; errors name the file."""
    weights, header = container.read(path, KIND, VERSION)
    try:
        parameters, fitted = header["parameters"], header["fitted"]
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
        raise ValueError(f"path: {path} is damaged, it does not describe a BetaVAE ({reason[:200]})") from error
    model.network_ = network.to(device).eval()
    model.device_ = str(device)
    return model
