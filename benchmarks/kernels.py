"""What a gradient and a Hessian product cost with other kernels in the second layer, relative to the RBF.

python -m benchmarks kernels

n = 3000, s = (10, 5), float64, the shortest of several alternating runs; the first layer is linear, so that the second
takes nearly all of the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from drkm.gram import Dense
from drkm.kernels import RBF, Kernel, Laplacian, Linear, Matern, Polynomial
from drkm.problem.energy import Energy

N, SIZES, REPEATS = 3000, (10, 5), 7
KERNELS: dict[str, Kernel] = {
    "RBF": RBF("scale"),
    "Matérn 3/2": Matern(1.5, "scale"),
    "Matérn 5/2": Matern(2.5, "scale"),
    "Laplacian": Laplacian("scale"),
    "polynomial of degree 3": Polynomial(3),
    "polynomial of degree 5": Polynomial(5),
}


def seconds(run: Callable[..., object]) -> float:
    clock = time.perf_counter()
    run()
    return time.perf_counter() - clock


def main() -> None:
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(N, 20, dtype=torch.float64, generator=generator)
    H = torch.linalg.qr(torch.randn(N, sum(SIZES), dtype=torch.float64, generator=generator))[0]
    direction = torch.randn(H.shape, dtype=torch.float64, generator=generator)
    runs: dict[str, tuple[Callable[..., object], Callable[..., object]]] = {}
    for name, kernel in KERNELS.items():
        deep = kernel.resolve(H[:, : SIZES[0]], layer=2)
        energy = Energy(X, [Linear(), deep], SIZES, (1.0, 1.0), Dense())
        runs[name] = (lambda e=energy: e.value_and_gradient(H), lambda e=energy: e.hessian(H)(direction))
    least = {name: [float("inf")] * 2 for name in runs}
    for _ in range(REPEATS):
        for name, pair in runs.items():
            least[name] = [min(old, seconds(run)) for old, run in zip(least[name], pair, strict=True)]
    gradient, product = least["RBF"]
    print(
        f"| kernel | gradient / that of the RBF ({1e3 * gradient:.0f} ms) | Hessian product ({1e3 * product:.0f} ms) |"
    )
    print("|---|---:|---:|")
    for name, (first, second) in least.items():
        print(f"| {name} | {first / gradient:.1f} | {second / product:.1f} |")


if __name__ == "__main__":
    main()
