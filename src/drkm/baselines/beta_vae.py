"""The β-VAE with the architecture of the paper, as a scikit-learn estimator."""

from __future__ import annotations

import math
import numbers
import os
import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from drkm.baselines import _vae_io
from drkm.baselines._images import as_unit_floats, check_image_shape, check_images, from_logits, to_device
from drkm.baselines._vae_network import VAENetwork
from drkm.baselines._vae_training import CHUNK, Schedule, evaluate, train
from drkm.validation import checks
from drkm.validation.callers import level_of_caller


class BetaVAE(TransformerMixin, BaseEstimator):
    """β-VAE for 64×64 images: Gaussian posterior, Bernoulli likelihood, KL term weighted by β.

    Minimises `E[-log p(x|z)] + β·KL(q(z|x) ‖ N(0, I))` with Adam. Some images are held out; training stops when their
    loss has not improved for `patience` steps, and the best weights are kept.

    Parameters
    ----------
    n_latents : int, default=10
    beta : float, default=4.0
        Weight of the KL term; 1 is the standard VAE.
    image_shape : (64, 64), (64, 64, 3) or None
        Shape of an image. None infers it from X, even if X has one row per image.
    learning_rate : float
        Adam's step size.
    batch_size : int
        Number of images per step, at most all.
    max_steps : int
        Maximum number of steps.
    validation_fraction : float in [0, 1)
        Share of held-out images, at least one image. With 0, all images are used for `max_steps` steps.
    check_every : int
        Number of steps between two evaluations of the held-out images.
    patience : int
        Steps without improvement on the held-out images before training stops.
    max_seconds : float or None
        Training stops after this time and keeps the best weights so far.
    device : "auto", "cpu", "cuda", ...
        "auto" is the first GPU, if there is one.
    random_state : int, RandomState or None
        The same integer gives the same model on the same machine; no global seed is read or set.
    verbose : int
        1 shows a progress bar.

    Attributes
    ----------
    n_iter_ : int
        Number of steps; `best_step_` is the one whose weights were kept.
    converged_ : bool
        Whether the held-out loss stopped improving before steps or time ran out.
    seconds_ : float
        Training time.
    history_ : list of dict
        At each check: step, seconds, training loss, and of the held-out images loss, reconstruction, KL
        divergence and ELBO (with β = 1), means per image in nats.
    image_shape_ : tuple of int
    n_features_in_ : int
    device_ : str
    network_ : torch.nn.Module
    """

    def __init__(
        self,
        n_latents: int = 10,
        beta: float = 4.0,
        *,
        image_shape: tuple[int, ...] | None = None,
        learning_rate: float = 1e-3,
        batch_size: int = 32,
        max_steps: int = 10_000,
        validation_fraction: float = 0.1,
        check_every: int = 50,
        patience: int = 1_000,
        max_seconds: float | None = None,
        device: str = "auto",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_latents = n_latents
        self.beta = beta
        self.image_shape = image_shape
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_steps = max_steps
        self.validation_fraction = validation_fraction
        self.check_every = check_every
        self.patience = patience
        self.max_seconds = max_seconds
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: None = None) -> BetaVAE:
        """Train on images; Ctrl-C ends training and keeps the best weights so far.

        Parameters
        ----------
        X : array of shape (n, 64, 64), (n, 64, 64, 3), (n, 4096) or (n, 12288)
            uint8, or floats in [0, 1].
        y : ignored

        Returns
        -------
        self
        """
        schedule = self._check_parameters()
        device = _device(self.device)
        images, shape, flat = check_images(X, check_image_shape(self.image_shape))
        seeds = checks.random_state(self.random_state).randint(2**31 - 1, size=2)
        held = self._held_out(len(images), np.random.default_rng(seeds[0]))
        generator = torch.Generator().manual_seed(int(seeds[1]))

        network = VAENetwork(1 if len(shape) == 2 else 3, int(self.n_latents))
        network.initialise(generator)
        network.to(device)
        data = to_device(images[~held], device), to_device(images[held], device)
        trace = train(network, *data, schedule, generator)
        if trace.stopped == "diverged":
            raise ValueError(
                f"learning_rate: training diverged by step {trace.n_steps} with {self.learning_rate},"
                " take a smaller one"
            )
        if trace.stopped == "interrupted":
            kept = f"interrupted, the weights of step {trace.best_step} are kept"
            warnings.warn(f"BetaVAE {kept}", ConvergenceWarning, stacklevel=level_of_caller())

        self.network_ = network.eval()
        self.device_ = str(device)
        self.image_shape_ = shape
        self.flat_ = flat
        self.n_features_in_ = math.prod(shape)
        self.n_iter_ = trace.n_steps
        self.best_step_ = trace.best_step
        self.converged_ = trace.stopped == "patience"
        self.seconds_ = trace.seconds
        self.history_ = trace.history
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """Return posterior means, shape (n, n_latents)."""
        data = self._data(X)
        with torch.no_grad():
            means = [self.network_.encode(as_unit_floats(part))[0] for part in data.split(CHUNK)]
        return torch.cat(means).cpu().numpy()

    def inverse_transform(self, Z: ArrayLike) -> NDArray[np.float32]:
        """Return decoded images: pixel means in [0, 1], in the layout of the training images."""
        check_is_fitted(self)
        n_latents = self.network_.n_latents
        codes = _numbers("Z", Z)
        if codes.ndim != 2 or codes.shape[1] != n_latents or not np.all(np.isfinite(codes)):
            raise ValueError(f"Z: expected finite codes of shape (n, {n_latents}), got shape {codes.shape}")
        parts = torch.tensor(codes, device=self.device_).split(CHUNK)
        with torch.no_grad():
            images = [from_logits(self.network_.decoder(p), self.image_shape_, self.flat_) for p in parts]
        return np.concatenate(images)

    def traverse(self, index: int, values: ArrayLike, base: ArrayLike | None = None) -> NDArray[np.float32]:
        """Return one image per value of one latent, with the others fixed at `base`.

        Parameters
        ----------
        index : int
            Index of the latent, from 0.
        values : array of shape (m,)
        base : codes of shape (n_latents,), one image, or None
            None is the mean of the prior, all zeros.

        Returns
        -------
        array of m images, in the layout of the training images
        """
        check_is_fitted(self)
        n_latents = self.network_.n_latents
        if not isinstance(index, numbers.Integral) or not 0 <= index < n_latents:
            raise ValueError(f"index: expected an integer from 0 to {n_latents - 1}, got {index!r}")
        settings = _numbers("values", values)
        if settings.ndim != 1 or len(settings) == 0 or not np.all(np.isfinite(settings)):
            raise ValueError(f"values: expected a 1-d array of finite numbers, at least one, got {values!r}")
        start = np.zeros(n_latents, dtype=np.float32) if base is None else np.asarray(base)
        if start.shape != (n_latents,):
            start = self.transform(start[None])[0]
        codes = np.repeat(start[None].astype(np.float32), len(settings), axis=0)
        codes[:, index] = settings
        return self.inverse_transform(codes)

    def sample(self, n: int = 1, random_state: Any = None) -> NDArray[np.float32]:
        """Return the decoded images of `n` draws from the prior N(0, I)."""
        check_is_fitted(self)
        checks.integer("n", n, 1)
        n_latents = self.network_.n_latents
        return self.inverse_transform(checks.random_state(random_state).standard_normal((int(n), n_latents)))

    def elbo(self, X: ArrayLike, random_state: Any = 0) -> float:
        """Return the mean evidence lower bound (β = 1) per image, in nats, with one noise draw per image."""
        data = self._data(X)
        noise = checks.random_state(random_state).standard_normal((1, len(data), self.network_.n_latents))
        draws = torch.tensor(noise, dtype=torch.float32, device=self.device_)
        return evaluate(self.network_, data, draws, 1.0)["elbo"]

    def score(self, X: ArrayLike, y: None = None) -> float:
        """Return minus the squared distance of an image to its reconstruction, averaged over the images of X.

        Images are reconstructed from posterior means; pixels are in [0, 1].
        """
        images, _, _ = check_images(X, getattr(self, "image_shape_", None))
        target = images.reshape(len(images), -1) / (255.0 if images.dtype == np.uint8 else 1.0)
        error = self.inverse_transform(self.transform(X)).reshape(len(images), -1) - target
        return -float(np.mean(np.sum(error**2, axis=1)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one safetensors file: weights, and everything else as JSON metadata."""
        check_is_fitted(self)
        _vae_io.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: str = "auto") -> BetaVAE:
        """Load a model that `save` wrote to a device."""
        model: BetaVAE = _vae_io.load(cls, path, _device(device))
        model.device = device
        return model

    def _data(self, X: ArrayLike) -> torch.Tensor:
        check_is_fitted(self)
        images, _, _ = check_images(X, self.image_shape_)
        return to_device(images, torch.device(self.device_))

    def _held_out(self, n: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        held = np.zeros(n, dtype=bool)
        if self.validation_fraction:
            count = max(1, round(n * self.validation_fraction))
            if count >= n:
                raise ValueError(
                    f"validation_fraction: {self.validation_fraction} of {n} images leaves none to train on"
                )
            held[rng.choice(n, count, replace=False)] = True
        return held

    def _check_parameters(self) -> Schedule:
        checks.integer("n_latents", self.n_latents, 1)
        if checks.number("validation_fraction", self.validation_fraction, positive=False) >= 1:
            raise ValueError(f"validation_fraction: expected a number in [0, 1), got {self.validation_fraction!r}")
        return Schedule(
            checks.number("beta", self.beta, positive=False),
            checks.number("learning_rate", self.learning_rate),
            checks.integer("batch_size", self.batch_size, 1),
            checks.integer("max_steps", self.max_steps, 1),
            checks.integer("check_every", self.check_every, 1),
            checks.integer("patience", self.patience, 1),
            None if self.max_seconds is None else checks.number("max_seconds", self.max_seconds),
            int(self.verbose),
        )


def _numbers(name: str, values: ArrayLike) -> NDArray[np.float32]:
    try:
        return np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected an array of numbers, got {values!r}") from error


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except Exception as error:
        raise ValueError(f"device: expected 'auto' or an available device, got {name!r}") from error
    return device
