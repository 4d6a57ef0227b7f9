"""A million samples exactly on one NVIDIA GPU: kernel PCA and two layers, from samples on the GPU, in float32.

python -m benchmarks.million                      every table; about seven minutes on an H200, 20 GB of its memory
python -m benchmarks.million products             products and eigenvalues against float64
python -m benchmarks.million kernel_pca           KernelPCA, one layer, to the precision of float32
python -m benchmarks.million one_layer            ConstrDRKM with one layer, to 1e-4
python -m benchmarks.million two_layers           with two layers, with the default weights and with equal ones
python -m benchmarks.million one_layer 300000     one sample size only

Smooth functions of three uniform factors with a little noise, as in `benchmarks.kernel_pca`, d = 50 or 784; RBF
kernels with their default bandwidths, 10 components, 5 in the second layer.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from drkm import ConstrDRKM, KernelPCA
from drkm.gram import StoredGram
from drkm.gram.split import SplitGram
from drkm.kernels import RBF, Kernel, Laplacian, Matern, Polynomial
from drkm.problem.eigen import leading_eigenpairs

TOL, SIZES = 1e-4, (10, 5)
#: (n, d) of the tables
ONE_LAYER = ((100_000, 50), (300_000, 50), (1_000_000, 50), (300_000, 784))
TWO_LAYERS = ((100_000, 50), (300_000, 50), (1_000_000, 50))
PRODUCTS = ((20_000, 50), (300_000, 784), (1_000_000, 50))
KERNELS: tuple[Kernel, ...] = (RBF("median"), Laplacian("median"), Matern(1.5, "median"), Polynomial(3))
#: rows of products that are checked in float64, and columns of the block
CHECKED, COLUMNS = 200, 32


def samples(n: int, d: int) -> Tensor:
    generator = torch.Generator("cuda").manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, device="cuda", generator=generator)

    z, F = torch.rand(n, 3, device="cuda", generator=generator), 2 * normal(3, 40)
    b = 6.28 * torch.rand(40, device="cuda", generator=generator)
    return torch.cos(z @ F + b) @ normal(40, d) / math.sqrt(40) + 0.05 * normal(n, d)


def measured(call: Callable[..., Any]) -> tuple[Any, float, float]:
    """Return the result of a call, its seconds, and the peak memory in GB, samples included."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    clock = time.perf_counter()
    found = call()
    torch.cuda.synchronize()
    return found, time.perf_counter() - clock, torch.cuda.max_memory_allocated() / 1e9


def products(sizes: tuple[tuple[int, int], ...]) -> None:
    """Print the cost of products and their error on some rows, and eigenvalues against float64."""
    print("| kernel | n | d | product with 32 columns, s | rough one, s | relative error | of the rough one |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for n, d in sizes:
        X = samples(n, d)
        A = torch.linalg.qr(torch.randn(n, COLUMNS, device="cuda"))[0]
        index = torch.arange(0, n, n // CHECKED, device="cuda")
        for rule in KERNELS:
            kernel: Any = rule.resolve(X, layer=1)
            gram = SplitGram(kernel, X)
            rough = gram.rough
            exact = torch.cat([kernel(X[i].double(), X.double()) @ A.double() for i in index.split(20)])
            errors, times = [], []
            for operator in (gram, rough):
                found = operator.matmul(A)[index].double()
                errors.append(float((found - exact).norm() / exact.norm()))
                times.append(measured(lambda operator=operator, A=A: operator.matmul(A))[1])
            print(
                f"| {kernel.describe()} | {n} | {d} | {times[0]:.3f} | {times[1]:.3f} | {errors[0]:.1e} "
                f"| {errors[1]:.1e} |",
                flush=True,
            )
    X = samples(20_000, 50)
    kernel = RBF("median").resolve(X, layer=1)
    pairs = leading_eigenpairs(SplitGram(kernel, X), 10, like=X, tol=0.0)
    values = leading_eigenpairs(StoredGram(kernel(X.double(), X.double())), 10, like=X.double(), tol=1e-13).values
    error = float((pairs.values / values - 1).abs().max())
    print(f"\n10 eigenvalues at n = 20,000 against float64: {error:.1e}, residual {pairs.residual:.1e}\n")


def kernel_pca(sizes: tuple[tuple[int, int], ...]) -> None:
    print("| KernelPCA, n | d | s | s, first fit | peak, GB |")
    print("|---|---:|---:|---:|---:|")
    for n, d in sizes:
        X = samples(n, d)
        runs = [measured(lambda X=X: KernelPCA(SIZES[0], kernel=RBF("median"), device="cuda").fit(X)) for _ in range(2)]
        print(f"| {n} | {d} | {runs[1][1]:.2f} | {runs[0][1]:.2f} | {runs[1][2]:.1f} |", flush=True)
    print()


def layers(components: tuple[int, ...], eta: Any, sizes: tuple[tuple[int, int], ...]) -> None:
    said = "" if len(components) == 1 else f", eta={eta!r}"
    print(f"| {len(components)} layers{said}, n | d | s | evaluations | stationarity | peak, GB |")
    print("|---|---:|---:|---:|---:|---:|")
    for n, d in sizes:
        X = samples(n, d)
        model = ConstrDRKM(components, eta=eta, device="cuda", dtype="float32", tol=TOL)
        model, seconds, peak = measured(lambda X=X, model=model: model.fit(X))
        print(
            f"| {n} | {d} | {seconds:.2f} | {model.fitted_.result.n_evaluations} | {model.stationarity_:.1e} "
            f"| {peak:.1f} |",
            flush=True,
        )
    print()


def main() -> None:
    what, *words = sys.argv[1:] or ["all"]
    if not torch.cuda.is_available():
        sys.exit("this benchmark needs a CUDA device")
    chosen = {int(word) for word in words}

    def some(sizes: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        return tuple(size for size in sizes if not chosen or size[0] in chosen)

    print(torch.cuda.get_device_name(), "\n")
    if what in ("all", "products"):
        products(some(PRODUCTS))
    if what in ("all", "kernel_pca"):
        kernel_pca(some(ONE_LAYER))
    if what in ("all", "one_layer"):
        layers(SIZES[:1], 1.0, some(ONE_LAYER))
    if what in ("all", "two_layers"):
        for eta in ("auto", 1.0):
            layers(SIZES, eta, some(TWO_LAYERS))


if __name__ == "__main__":
    main()
