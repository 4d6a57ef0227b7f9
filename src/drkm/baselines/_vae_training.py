"""The training loop of the β-VAE: Adam on the β-ELBO, with early stopping on held-out images."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from drkm.baselines._images import as_unit_floats
from drkm.baselines._vae_network import VAENetwork

# Held-out losses are averaged over this many noise draws, the same at every check, so that checks are comparable.
_DRAWS = 4
#: batch size when nothing is learned
CHUNK = 256


@dataclass
class Schedule:
    """When to step, to check and to stop; the meaning of each field is in `BetaVAE`."""

    beta: float
    learning_rate: float
    batch_size: int
    max_steps: int
    check_every: int
    patience: int
    max_seconds: float | None
    verbose: int


@dataclass
class Trace:
    """The record of a training: one dict per check, and where and why it stopped."""

    history: list[dict[str, float]] = field(default_factory=list)
    n_steps: int = 0
    best_step: int = 0
    stopped: str = "max_steps"
    seconds: float = 0.0


def train(
    network: VAENetwork,
    images: torch.Tensor,
    held_out: torch.Tensor,
    schedule: Schedule,
    generator: torch.Generator,
) -> Trace:
    """Train in place and keep the weights with the best held-out loss, or the last ones if nothing is held out.

    Parameters
    ----------
    network : VAENetwork
        On the device of the images.
    images, held_out : tensors of shape (n, channels, 64, 64), uint8 or float32
        Already on the device, so that no batch is copied.
    generator : torch.Generator on the CPU
        Batches and noise are drawn there, a block of steps at a time, so that a seed means the same on every
        device.
    """
    trace, best, best_weights = Trace(), math.inf, None
    start = time.perf_counter()
    n_latents = network.n_latents
    check_noise = torch.randn(_DRAWS, len(held_out), n_latents, generator=generator).to(images.device)
    # One fused kernel per step instead of one per array: on a GPU, launches take most of the time.
    optimiser = torch.optim.Adam(network.parameters(), lr=schedule.learning_rate, fused=images.is_cuda)
    batches = _batches(len(images), schedule.batch_size, generator)
    with _progress(schedule) as bar, _deterministic(images.is_cuda), _interruptible(trace):
        while trace.n_steps < schedule.max_steps:
            steps = min(schedule.check_every, schedule.max_steps - trace.n_steps)
            index = torch.stack([next(batches) for _ in range(steps)])
            noise = torch.randn((*index.shape, n_latents), generator=generator).to(images.device)
            index = index.to(images.device)
            done, loss = 0, torch.zeros((), device=images.device)
            for rows, draw in zip(index, noise, strict=True):
                loss += _step(network, optimiser, images[rows], draw, schedule.beta)
                done += 1
                bar.update()
                if _out_of_time(start, schedule):
                    break
            trace.n_steps += done
            record = {"step": trace.n_steps, "loss": float(loss) / done}
            if len(held_out):
                record |= evaluate(network, held_out, check_noise, schedule.beta)
            record["seconds"] = time.perf_counter() - start
            trace.history.append(record)
            bar.set_postfix({k: f"{v:.1f}" for k, v in record.items() if k in ("loss", "held_out_loss")})
            if not math.isfinite(record["loss"]):
                trace.stopped = "diverged"
                break
            if not len(held_out):
                trace.best_step = trace.n_steps
            elif record["held_out_loss"] < best:
                best, trace.best_step = record["held_out_loss"], trace.n_steps
                best_weights = {k: v.clone() for k, v in network.state_dict().items()}
            elif trace.n_steps - trace.best_step >= schedule.patience:
                trace.stopped = "patience"
                break
            if _out_of_time(start, schedule):
                trace.stopped = "max_seconds"
                break
    if best_weights is not None:
        network.load_state_dict(best_weights)
    trace.seconds = time.perf_counter() - start
    return trace


def _step(
    network: VAENetwork, optimiser: torch.optim.Optimizer, batch: torch.Tensor, noise: torch.Tensor, beta: float
) -> torch.Tensor:
    """Take one step, and return the mean loss before it."""
    loss = _loss(network, batch, noise, beta).mean()
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    optimiser.step()
    return loss.detach()


@torch.no_grad()
def evaluate(network: VAENetwork, images: torch.Tensor, noise: torch.Tensor, beta: float) -> dict[str, float]:
    """Return mean losses per image in nats, averaged over noise draws of shape (draws, n, n_latents)."""
    sums = torch.zeros(2, dtype=torch.float64, device=images.device)
    for draw in noise:
        for start in range(0, len(images), CHUNK):
            part = slice(start, start + CHUNK)
            reconstruction, divergence = network(as_unit_floats(images[part]), draw[part])
            sums += torch.stack([reconstruction.double().sum(), divergence.double().sum()])
    reconstruction, divergence = (sums / (len(noise) * len(images))).tolist()
    return {
        "held_out_loss": reconstruction + beta * divergence,
        "reconstruction": reconstruction,
        "divergence": divergence,
        "elbo": -(reconstruction + divergence),
    }


def _loss(network: VAENetwork, batch: torch.Tensor, noise: torch.Tensor, beta: float) -> torch.Tensor:
    reconstruction, divergence = network(as_unit_floats(batch), noise)
    return reconstruction + beta * divergence


def _batches(n: int, size: int, generator: torch.Generator) -> Iterator[torch.Tensor]:
    """Yield index batches from one shuffled pass after another; a batch may span two passes."""
    size = min(size, n)
    queue = torch.empty(0, dtype=torch.long)
    while True:
        while len(queue) < size:
            queue = torch.cat([queue, torch.randperm(n, generator=generator)])
        yield queue[:size]
        queue = queue[size:]


def _out_of_time(start: float, schedule: Schedule) -> bool:
    return schedule.max_seconds is not None and time.perf_counter() - start >= schedule.max_seconds


@contextlib.contextmanager
def _interruptible(trace: Trace) -> Iterator[None]:
    """Let Ctrl-C end the training early; before the first check there is nothing to keep."""
    try:
        yield
    except KeyboardInterrupt:
        if not trace.history:
            raise
        trace.stopped = "interrupted"


def _deterministic(cuda: bool) -> contextlib.AbstractContextManager:
    # The fastest cuDNN gradients sum in any order, but a seed should give one result. Restored on exit.
    if not cuda:
        return contextlib.nullcontext()
    return torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True)


def _progress(schedule: Schedule) -> Any:
    from tqdm import tqdm

    return tqdm(total=schedule.max_steps, desc="beta-VAE", unit="step", disable=not schedule.verbose)
