"""The models of the disentanglement study, each as one function from training images to codes of new images."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from drkm.baselines import BetaVAE
from drkm.estimator import ConstrDRKM
from drkm.gram import RememberedDistances
from drkm.kernels import RBF
from drkm.kernels.bandwidth import resolve_bandwidth

#: components of the two layers; the codes of layer 1 are scored
LAYERS = (10, 5)
#: σ² with which both layers of the paper's recipe begin
PAPER_SIGMA2 = 50.0
#: images encoded at once: a block of Cars3D rows in float64 is 100 MB
BLOCK = 1000


@dataclass(frozen=True)
class Rule:
    """What is left to choose in a two-layer model, as multiples of the factor-free defaults.

    Attributes
    ----------
    width : float
        σ² of layer 1 relative to half the median squared distance.
    axes : {"ritz", "varimax", "ica"}
    deep_width : float
        σ² of layer 2 relative to 2·s_1/n.
    deep_eta : float
        η_2 beside η_1 = 1: the larger, the less layer 2 pulls at layer 1.
    center : bool
        Whether both layers are centred in feature space.
    """

    width: float = 1.0
    axes: str = "ritz"
    deep_width: float = 1.0
    deep_eta: float = 1.0
    center: bool = False

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in asdict(self).items())


#: the library's defaults
DEFAULTS = Rule()


@dataclass(frozen=True)
class Codes:
    """Codes of the evaluation images, how long training and encoding took, and what is worth knowing of the fit."""

    codes: NDArray[np.float64]
    seconds: float
    encoding_seconds: float
    note: str = ""


def rows_of(images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return images as rows of pixels in [0, 1]."""
    return images.reshape(len(images), -1) / 255.0


def two_layers(train: NDArray[np.float64], rule: Rule = DEFAULTS, seed: int = 0) -> ConstrDRKM:
    """Return the unfitted two-layer model of a rule; with the default rule it is ConstrDRKM() in all but name."""
    n = len(train)
    kernels = [RBF(_first_width(train, rule)), RBF(rule.deep_width * 2.0 * LAYERS[0] / n)]
    eta = (1.0, rule.deep_eta)
    return ConstrDRKM(LAYERS, kernel=kernels, eta=eta, axes=rule.axes, center=rule.center, random_state=seed)


def one_layer(
    train: NDArray[np.float64], rule: Rule = DEFAULTS, axes: str = "ritz", center: bool = False
) -> ConstrDRKM:
    """Return unfitted kernel PCA with the first-layer kernel of a rule."""
    return ConstrDRKM(LAYERS[0], kernel=RBF(_first_width(train, rule)), axes=axes, center=center)


def codes_of(
    kind: str, train: NDArray[np.uint8], evaluation: NDArray[np.uint8], *, seed: int = 0, rule: Rule = DEFAULTS
) -> Codes:
    """Train one kind of model on images and return the ten codes of other images.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    train, evaluation : uint8 arrays of shape (n, 64, 64) or (n, 64, 64, 3)
    seed : int
        Of random starts, the β-VAE and random codes.
    rule : Rule
        Bandwidths and axes of our model; kernel PCA shares the first-layer kernel.
    """
    if kind not in KINDS:
        raise ValueError(f"kind: unknown name {kind!r}, allowed are {', '.join(KINDS)}")
    return KINDS[kind](train, evaluation, seed, rule)


def _first_width(train: NDArray[np.float64], rule: Rule) -> float:
    import torch

    return rule.width * resolve_bandwidth("median", torch.from_numpy(np.ascontiguousarray(train)), layer=1)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep warnings of fits that did not converge out of the way: the note of a run says it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def fit_and_encode(make: Callable[[], ConstrDRKM], rows: NDArray[np.float64], evaluation: NDArray[np.uint8]) -> Codes:
    """Fit a kernel model and return the layer-1 codes of the evaluation images."""
    start = time.perf_counter()
    with quiet():
        model = make().fit(rows)
    seconds, start = time.perf_counter() - start, time.perf_counter()
    codes = encode(model, evaluation)
    widths = ", ".join(f"{kernel.sigma2:.4g}" for kernel in model.kernels_)  # type: ignore[attr-defined]
    note = (
        f"σ² {widths}; J {model.objective_:.4f}; feasibility {model.feasibility_:.0e}; "
        f"stationarity {model.stationarity_:.0e}; {model.n_iter_} iterations"
    )
    return Codes(codes, seconds, time.perf_counter() - start, note)


def encode(model: ConstrDRKM, images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the layer-1 codes of images, a block at a time."""
    blocks = [model.transform(rows_of(images[i : i + BLOCK])) for i in range(0, len(images), BLOCK)]
    return np.concatenate(blocks)[:, : LAYERS[0]]


def _ours(train: NDArray, evaluation: NDArray, seed: int, rule: Rule) -> Codes:
    rows = rows_of(train)
    return fit_and_encode(lambda: two_layers(rows, rule, seed), rows, evaluation)


def _defaults(train: NDArray, evaluation: NDArray, seed: int, rule: Rule) -> Codes:
    rows = rows_of(train)
    return fit_and_encode(lambda: ConstrDRKM(LAYERS, random_state=seed), rows, evaluation)


def _kernel_pca(axes: str | None = "ritz", center: bool = False, fixed: Rule | None = None) -> Callable[..., Codes]:
    def kernel_pca(train: NDArray, evaluation: NDArray, seed: int, rule: Rule) -> Codes:
        rows, used = rows_of(train), fixed or rule
        return fit_and_encode(lambda: one_layer(rows, used, axes or used.axes, center), rows, evaluation)

    return kernel_pca


def _paper(init: str, learn_bandwidth: bool) -> Callable[..., Codes]:
    def paper(train: NDArray, evaluation: NDArray, seed: int, rule: Rule) -> Codes:
        def make() -> ConstrDRKM:
            # Single precision is PyTorch's own; the distances of images are formed once, not at each of 3,500 steps.
            options: dict[str, Any] = {"dtype": "float32", "gram": RememberedDistances(), "random_state": seed}
            return ConstrDRKM.paper(LAYERS, PAPER_SIGMA2, init=init, learn_bandwidth=learn_bandwidth, **options)

        return fit_and_encode(make, rows_of(train), evaluation)

    return paper


def _beta_vae(train: NDArray, evaluation: NDArray, seed: int, rule: Rule) -> Codes:
    model = BetaVAE(LAYERS[0], beta=4.0, random_state=seed).fit(train)
    start = time.perf_counter()
    codes = np.asarray(model.transform(evaluation), dtype=np.float64)
    alive = int(np.sum(codes.std(axis=0) > 0.1))
    note = f"{model.n_iter_} steps, best {model.best_step_}, on {model.device_.split(':')[0]}; {alive} latents in use"
    return Codes(codes, model.seconds_, time.perf_counter() - start, note)


def _random(train: NDArray, evaluation: NDArray, seed: int, rule: Rule) -> Codes:
    return Codes(np.random.default_rng(seed).standard_normal((len(evaluation), LAYERS[0])), 0.0, 0.0)


KINDS: dict[str, Callable[[NDArray, NDArray, int, Rule], Codes]] = {
    "ours": _ours,
    "defaults": _defaults,
    "kpca-median": _kernel_pca(fixed=DEFAULTS),
    "kpca": _kernel_pca(),
    "kpca-axes": _kernel_pca(axes=None),
    "kpca-centred": _kernel_pca(center=True),
    "beta-vae": _beta_vae,
    "paper-random": _paper("random", True),
    "paper-kpca": _paper("kpca", True),
    "paper-random-fixed": _paper("random", False),
    "paper-kpca-fixed": _paper("kpca", False),
    "random": _random,
}
