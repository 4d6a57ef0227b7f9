"""The networks of the β-VAE: four convolutions to 4×4, one to 1×1, and back."""

from __future__ import annotations

import itertools
import math

import torch
from torch import nn

CHANNELS = (32, 32, 64, 64)
WIDTH = 256
SIZE = 64


class VAENetwork(nn.Module):
    """Encoder to the mean and log-variance of a Gaussian posterior, decoder to Bernoulli logits.

    conv 32 → 32 → 64 → 64 (4×4, stride 2) → 256 (4×4, stride 4, to 1×1) → FC to 2·n_latents, a ReLU after
    each convolution; the decoder is the mirror image.

    Parameters
    ----------
    n_channels : int
        1 or 3.
    n_latents : int
    """

    def __init__(self, n_channels: int, n_latents: int) -> None:
        super().__init__()
        self.n_latents = n_latents
        widths = (n_channels, *CHANNELS)
        down: list[nn.Module] = []
        for wide, narrow in itertools.pairwise(widths):
            down += [_empty(nn.Conv2d, wide, narrow, 4, stride=2, padding=1), nn.ReLU()]
        down += [_empty(nn.Conv2d, CHANNELS[-1], WIDTH, 4, stride=4), nn.ReLU(), nn.Flatten()]
        self.encoder = nn.Sequential(*down, _empty(nn.Linear, WIDTH, 2 * n_latents))

        up: list[nn.Module] = [_empty(nn.Linear, n_latents, WIDTH), nn.ReLU(), nn.Unflatten(1, (WIDTH, 1, 1))]
        up += [_empty(nn.ConvTranspose2d, WIDTH, CHANNELS[-1], 4, stride=4), nn.ReLU()]
        for narrow, wide in zip(widths[:0:-1], widths[-2::-1], strict=True):
            up += [_empty(nn.ConvTranspose2d, narrow, wide, 4, stride=2, padding=1), nn.ReLU()]
        self.decoder = nn.Sequential(*up[:-1])

    def initialise(self, generator: torch.Generator) -> None:
        """Draw every weight from U(-1/√fan_in, 1/√fan_in), PyTorch's own rule, with a given generator."""
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.ConvTranspose2d | nn.Linear):
                bound = 1 / math.sqrt(module.weight[0].numel())
                nn.init.uniform_(module.weight, -bound, bound, generator=generator)
                if module.bias is not None:
                    nn.init.uniform_(module.bias, -bound, bound, generator=generator)

    def encode(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return mean and log-variance of the posterior, each of shape (n, n_latents)."""
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        return mean, log_variance

    def forward(self, x: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the reconstruction loss and the KL divergence of each image in nats, both of shape (n,).

        Parameters
        ----------
        x : tensor of shape (n, channels, 64, 64), values in [0, 1]
        noise : tensor of shape (n, n_latents), standard normal
        """
        mean, log_variance = self.encode(x)
        logits = self.decoder(mean + torch.exp(0.5 * log_variance) * noise)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="none")
        divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance)
        return loss.flatten(1).sum(1), divergence.sum(1)


def _empty(kind: type[nn.Module], *args: int, **kwargs: int) -> nn.Module:
    # Built without PyTorch's own initialisation, which would draw from the global random state.
    return nn.utils.skip_init(kind, *args, **kwargs)
