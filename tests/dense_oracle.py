"""Plain float64 formulas as oracles for the library: whole matrices, automatic derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from drkm.kernels import RBF, Cosine, FeatureMap, Kernel, Laplacian, Linear, Matern, Polynomial

WEIGHT = torch.from_numpy(np.random.default_rng(11).standard_normal((3, 7)))
BIAS = torch.from_numpy(np.random.default_rng(12).standard_normal(7))


def structured(n: int) -> Tensor:
    """Return the structured set: 64 features of three hidden factors."""
    rng = np.random.RandomState(0)
    z, F = rng.rand(n, 3), 2 * rng.randn(3, 40)
    b, A = 6.28 * rng.rand(40), rng.randn(40, 64)
    return torch.from_numpy(np.cos(z @ F + b) @ A / math.sqrt(40) + 0.05 * rng.randn(n, 64))


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def orthonormal(n: int, s: int, seed: int = 0) -> Tensor:
    return torch.linalg.qr(draw(n, s, seed=seed))[0]


def waves(x: Tensor) -> Tensor:
    """A feature map that is not invariant to rotations, for inputs of up to three features."""
    return torch.tanh(x @ WEIGHT[: x.shape[1]].to(x) + BIAS.to(x))


def network(inputs: int = 3, outputs: int = 6) -> torch.nn.Module:
    net = torch.nn.Sequential(torch.nn.Linear(inputs, 8), torch.nn.Tanh(), torch.nn.Linear(8, outputs)).double()
    with torch.no_grad():
        for k, parameter in enumerate(net.parameters()):
            parameter.copy_(0.7 * draw(*parameter.shape, seed=20 + k))
    return net


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    return (x[:, None, :] - y[None, :, :]).square().sum(dim=2)


def radial(kernel: Kernel, d2: Tensor, log_scale: Tensor | float = 0.0) -> Tensor:
    """Return an isotropic kernel as a function of the squared distance, with σ² multiplied by exp(log_scale)."""
    sigma2 = kernel.sigma2 * torch.exp(torch.as_tensor(log_scale, dtype=d2.dtype))
    if isinstance(kernel, RBF):
        return torch.exp(-d2 / (2 * sigma2))
    apart = d2 > 0
    d = torch.where(apart, torch.where(apart, d2, torch.ones_like(d2)).sqrt(), torch.zeros_like(d2)) / sigma2.sqrt()
    if isinstance(kernel, Laplacian):
        return torch.exp(-d)
    assert isinstance(kernel, Matern)
    a = math.sqrt(2 * kernel.nu) * d
    return (1 + a + (a**2 / 3 if kernel.nu == 2.5 else 0)) * torch.exp(-a)


def values(kernel: Kernel, x: Tensor, y: Tensor, log_scale: Tensor | float = 0.0) -> Tensor:
    """Return the matrix of kernel values by its textbook formula."""
    if isinstance(kernel, RBF | Laplacian | Matern):
        return radial(kernel, squared_distances(x, y), log_scale)
    if isinstance(kernel, Polynomial):
        return (kernel.gamma * x @ y.T + kernel.offset) ** kernel.degree
    if isinstance(kernel, Linear):
        return x @ y.T
    if isinstance(kernel, Cosine):
        return (x @ y.T) / (x.norm(dim=1)[:, None] * y.norm(dim=1)[None, :])
    assert isinstance(kernel, FeatureMap)
    phi, psi = kernel.map(x), kernel.map(y)
    if kernel.normalize:
        phi, psi = phi / phi.norm(dim=1, keepdim=True), psi / psi.norm(dim=1, keepdim=True)
    return phi @ psi.T


def centring(n: int) -> Tensor:
    return torch.eye(n, dtype=torch.float64) - 1.0 / n


def dense_energy(
    X: Tensor,
    kernels: Sequence[Kernel],
    sizes: Sequence[int],
    eta: Sequence[float],
    center: bool = False,
    value_of: Callable[..., Tensor] = values,
) -> Callable[[Tensor], Tensor]:
    """Return J as a differentiable function of H."""
    C = centring(len(X)) if center else torch.eye(len(X), dtype=torch.float64)

    def J(H: Tensor) -> Tensor:
        total, below = H.new_zeros(()), X
        for kernel, A, eta_l in zip(kernels, H.split(list(sizes), dim=1), eta, strict=True):
            K = C @ value_of(kernel, below, below) @ C
            total = total - torch.trace(A.T @ K @ A) / (2 * eta_l)
            below = A
        return total

    return J


class FreshMemory(TorchDispatchMode):
    """Observes the result of every operation and counts those that are not in the memory of the given tensors."""

    def __init__(self, *given: torch.Tensor):
        super().__init__()
        self.count = 0
        self._given = {tensor.untyped_storage().data_ptr() for tensor in given}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.count += out.untyped_storage().data_ptr() not in self._given
        return out


class LargestTensor(TorchDispatchMode):
    """Observes the result of every operation and records the number of entries of the largest."""

    entries = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for part in out if isinstance(out, tuple | list) else [out]:
            if isinstance(part, torch.Tensor):
                self.entries = max(self.entries, part.numel())
        return out
