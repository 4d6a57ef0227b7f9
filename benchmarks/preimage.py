"""How fast pre-images are: a batch against the best loop over points, and the memory it takes.

python -m benchmarks.preimage
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch

from drkm.datasets import make_square_spiral
from drkm.eigen import leading_eigenpairs
from drkm.gram import Dense
from drkm.kernels import RBF
from drkm.preimage import Components, preimage

N = 3000
TOL = 1e-8
LOOPED = 300
ALONE = 60


def loop(components: Components, coordinates: torch.Tensor) -> np.ndarray:
    """Mika's fixed point one point at a time, in numpy: vectors of n numbers, nothing formed twice."""
    X = components.X.numpy() - components.X.mean(dim=0).numpy()
    sigma2 = components.kernel.sigma2
    factors = np.concatenate([X / sigma2, -0.5 * (X**2).sum(1, keepdims=True) / sigma2], axis=1)
    augmented = np.concatenate([X, np.ones((len(X), 1))], axis=1)
    H, begin = components.H.numpy(), components.nearest_training_point(coordinates)[0].numpy()
    out = np.empty((len(coordinates), X.shape[1]))
    query = np.ones(X.shape[1] + 1)
    for i, a in enumerate(coordinates.numpy()):
        weighted = augmented * (H @ a)[:, None]
        x = X[begin[i]]
        for _ in range(5000):
            query[:-1] = x
            # The factor exp(-‖x‖²/(2σ²)) cancels in the quotient.
            k = factors @ query
            k -= k.max()
            sums = np.exp(k, out=k) @ weighted
            new = sums[:-1] / sums[-1]
            moved = np.abs(new - x).max()
            x = new
            if moved <= TOL * sigma2**0.5:
                break
        out[i] = x
    return out + components.X.mean(dim=0).numpy()


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    X = torch.from_numpy(make_square_spiral(N, noise=0.1, random_state=0)[0])
    torch.set_num_threads(1)
    print(f"{N} points against {N} training points, square and spiral, float64, one thread")
    for sigma2, count in ((0.05, 3), (0.05, 20), (0.2, 20)):
        kernel = RBF(sigma2)
        gram = Dense().fixed(kernel, X)
        H = leading_eigenpairs(gram, count, like=X).vectors
        components = Components(kernel, X, H, gram=gram)
        a = components.coordinates(kernel(X, X))
        result = preimage(components, a, tol=TOL)
        batched = seconds(lambda c=components, a=a: preimage(c, a, tol=TOL))
        looped = seconds(lambda c=components, a=a: loop(c, a[:LOOPED]), 2) * N / LOOPED
        one = seconds(lambda c=components, a=a: preimage(c, a[:ALONE], tol=TOL, batch_size=1), 1) * N / ALONE
        apart = np.abs(loop(components, a[:LOOPED]) - result.points[:LOOPED].numpy()).max()
        print(
            f"σ²={sigma2}, {count} components: batched {batched:.2f} s "
            f"({result.converged.double().mean():.1%} converged, "
            f"{result.iterations.double().mean():.1f} steps), "
            f"loop in numpy {looped:.1f} s ({looped / batched:.1f} times), "
            f"ours with batches of one {one:.1f} s ({one / batched:.1f} times), difference {apart:.1g}"
        )
    whole = N * N * 8 / 2**20
    print(f"memory for kernel values: {peak_bytes() / 2**20:.1f} MiB, the n×n matrix would take {whole:.0f}")


def peak_bytes() -> int:
    """Largest block of kernel values of one sweep, counted by the rows the kernel is asked for."""
    largest = 0

    class Counting(RBF):
        def jet(self, exponent: torch.Tensor, order: int) -> tuple[torch.Tensor, ...]:
            nonlocal largest
            largest = max(largest, exponent.nbytes)
            return super().jet(exponent, order)

    X = torch.from_numpy(make_square_spiral(N, noise=0.1, random_state=0)[0])
    components = Components(Counting(0.05), X, torch.ones(N, 1).double() / N**0.5)
    rows = [components.coordinates(components.kernel(part, X)) for part in X.split(64)]
    largest = 0
    preimage(components, torch.cat(rows))
    return largest


if __name__ == "__main__":
    main()
