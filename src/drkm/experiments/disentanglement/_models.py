"""The models of the disentanglement experiments: each family trains on images and gives ten codes to others."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from drkm.baselines import BetaVAE
from drkm.estimator import ConstrDRKM
from drkm.experiments.disentanglement._distances import RememberedDistances
from drkm.experiments.disentanglement._filters import filtered
from drkm.experiments.quiet import quiet
from drkm.kernels import RBF, Kernel, Linear
from drkm.kernels.bandwidth import resolve_bandwidth

Images = NDArray[np.uint8]
#: number of codes that are scored
N_CODES = 10
#: initial σ² of all layers in the paper's recipe
PAPER_SIGMA2 = 50.0
#: images encoded at once: a block of Cars3D rows in float64 is 100 MB
BLOCK = 1000
#: standard deviation above which a latent of a β-VAE counts as used
ALIVE = 0.1


@dataclass(frozen=True)
class Codes:
    """Codes of the evaluation images, with details of the fit."""

    #: for each layer an array of shape (m, s_l)
    layers: list[NDArray[np.float64]]
    seconds: float
    encoding_seconds: float
    #: objective, feasibility, bandwidths and the like, as JSON
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def scored(self) -> NDArray[np.float64]:
        """The ten codes that are scored: those of the layer that has ten, else all layers concatenated."""
        ten = [codes for codes in self.layers if codes.shape[1] == N_CODES]
        return ten[0] if ten else np.concatenate(self.layers, axis=1)

    def rows(self, some: slice) -> Codes:
        """Return the codes of some of the images."""
        return replace(self, layers=[codes[some] for codes in self.layers])


def train_and_encode(parameters: Mapping[str, Any], train: Images, evaluation: Images, seed: int) -> Codes:
    """Train a model on images and return the codes of other images.

    Parameters
    ----------
    parameters : mapping
        `family`, one of `FAMILIES`, and what the family takes:

        - "drkm", our defaults: `layers`; optionally `width` (σ² of layer 1 as a multiple of the median rule),
          `eta` ("auto") or `deep_eta` (η above layer 1), `center`, `init`. One layer is kernel PCA. With `first` of
          "linear" the RBF kernels begin in layer 2, and `width` is a multiple of their rule there; `deep_width` is one
          of the rule of all RBF layers above that; `filters` puts fixed filters below layer 1 (`filtered`).
        - "paper", as published: `layers`, `gamma`; optionally `sigma2` (50), `init` ("random" or "kpca") and
          `learn_bandwidth`.
        - "beta-vae": `beta`; optionally `max_steps`, `max_seconds` and `device`.
        - "random": normal noise.
    train, evaluation : uint8 arrays of shape (n, 64, 64) or (n, 64, 64, 3)
    seed : int
        Seed of random starts, of the β-VAE and of random codes. The default start of "drkm" is deterministic.
    """
    family = parameters["family"]
    if family not in FAMILIES:
        raise ValueError(f"family: unknown name {family!r}, allowed are {', '.join(FAMILIES)}")
    return FAMILIES[family](parameters, train, evaluation, seed)


def rows_of(images: Images, dtype: Any = np.float64) -> NDArray[Any]:
    """Return images as rows of pixels in [0, 1]."""
    return images.reshape(len(images), -1) / dtype(255)


def default_model(parameters: Mapping[str, Any], rows: NDArray[np.float64], seed: int = 0) -> ConstrDRKM:
    """Return our unfitted model; without `eta` in the parameters it has the paper's weights, formerly the default."""
    layers: Sequence[int] = parameters["layers"]
    options: dict[str, Any] = {name: parameters[name] for name in ("center", "init") if name in parameters}
    eta = parameters.get("eta", (1.0, *[parameters.get("deep_eta", 1.0)] * (len(layers) - 1)))
    if "width" in parameters:
        options["kernel"] = _kernels(parameters, rows)
    return ConstrDRKM(tuple(layers), eta=eta, random_state=seed, device="cpu", **options)


def _kernels(parameters: Mapping[str, Any], rows: NDArray[np.float64]) -> list[Kernel]:
    width, deep_width = parameters["width"], parameters.get("deep_width", 1.0)
    scales = [2.0 * below / len(rows) for below in parameters["layers"][:-1]]
    if parameters.get("first") == "linear":
        return [Linear(), RBF(width * scales[0]), *(RBF(deep_width * scale) for scale in scales[1:])]
    median = resolve_bandwidth("median", torch.from_numpy(np.ascontiguousarray(rows)), layer=1)
    return [RBF(width * median), *(RBF(deep_width * scale) for scale in scales)]


def inputs_of(parameters: Mapping[str, Any], images: Images) -> NDArray[np.float64]:
    """Return the inputs of layer 1 of our model: the pixels of the images, or their fixed filters."""
    return filtered(images) if parameters.get("filters") else rows_of(images)


def rotation(axes: str, codes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rotation from Ritz axes to other axes, computed from the codes of the training images."""
    from drkm.problem.axes import ica, varimax

    if axes == "ritz":
        return np.eye(codes.shape[1])
    return {"varimax": varimax, "ica": ica}[axes](torch.from_numpy(codes)).numpy()


def _drkm(parameters: Mapping[str, Any], train: Images, evaluation: Images, seed: int) -> Codes:
    rows = inputs_of(parameters, train)
    return fit_and_encode(
        lambda: default_model(parameters, rows, seed), rows, partial(inputs_of, parameters), evaluation
    )


def _paper(parameters: Mapping[str, Any], train: Images, evaluation: Images, seed: int) -> Codes:
    def make() -> ConstrDRKM:
        return ConstrDRKM.paper(
            tuple(parameters["layers"]),
            parameters.get("sigma2", PAPER_SIGMA2),
            gamma=parameters.get("gamma", 1.0),
            init=parameters.get("init", "random"),
            learn_bandwidth=parameters.get("learn_bandwidth", True),
            # Single precision is PyTorch's default; image distances are formed once, not in each of 3,500 steps.
            dtype="float32",
            gram=RememberedDistances(),
            device="cpu",
            random_state=seed,
        )

    single = partial(rows_of, dtype=np.float32)
    return fit_and_encode(make, single(train), single, evaluation)


def fit_and_encode(
    make: Callable[[], ConstrDRKM], rows: NDArray[Any], prepare: Callable[[Images], NDArray[Any]], evaluation: Images
) -> Codes:
    """Fit a kernel model to rows and return the codes of equally prepared evaluation images, layer by layer."""
    start = time.perf_counter()
    with quiet():
        model = make().fit(rows)
    seconds, start = time.perf_counter() - start, time.perf_counter()
    codes = encode(model, evaluation, prepare)
    details = {
        "objective": float(model.objective_),
        "feasibility": float(model.feasibility_),
        "stationarity": float(model.stationarity_),
        "converged": bool(model.converged_),
        "iterations": int(model.n_iter_),
        "bandwidths": [kernel.bandwidth if kernel.has_bandwidth else None for kernel in model.kernels_],
        "device": "cpu",
    }
    layers = [codes[:, block] for block in model.layer_slices_]
    return Codes(layers, seconds, time.perf_counter() - start, details)


def encode(
    model: ConstrDRKM, images: Images, prepare: Callable[[Images], NDArray[Any]] = rows_of
) -> NDArray[np.float64]:
    """Return the codes of images with all layers concatenated, computed in blocks of images."""
    blocks = [model.transform(prepare(images[i : i + BLOCK])) for i in range(0, len(images), BLOCK)]
    return np.concatenate(blocks).astype(np.float64)


def _beta_vae(parameters: Mapping[str, Any], train: Images, evaluation: Images, seed: int) -> Codes:
    options = {name: parameters[name] for name in ("max_steps", "max_seconds", "device") if name in parameters}
    model = BetaVAE(N_CODES, beta=parameters.get("beta", 4.0), random_state=seed, **options).fit(train)
    start = time.perf_counter()
    codes = np.asarray(model.transform(evaluation), dtype=np.float64)
    details = {
        "iterations": int(model.n_iter_),
        "best_step": int(model.best_step_),
        "converged": bool(model.converged_),
        "latents_used": int(np.sum(codes.std(axis=0) > ALIVE)),
        "device": device_name(model.device_),
    }
    return Codes([codes], model.seconds_, time.perf_counter() - start, details)


def device_name(device: str) -> str:
    """Return "cpu", or the name of a GPU."""
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


def _random(parameters: Mapping[str, Any], train: Images, evaluation: Images, seed: int) -> Codes:
    noise = np.random.default_rng(seed).standard_normal((len(evaluation), N_CODES))
    return Codes([noise], 0.0, 0.0, {"device": "cpu"})


FAMILIES: dict[str, Callable[[Mapping[str, Any], Images, Images, int], Codes]] = {
    "drkm": _drkm,
    "paper": _paper,
    "beta-vae": _beta_vae,
    "random": _random,
}
