"""The speed of pre-images: a batch against the best loop over points, and its memory.

python -m benchmarks.preimage
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch

from drkm.datasets import make_square_spiral
from drkm.files.rows import in_memory
from drkm.gram import Dense
from drkm.inference.preimage import preimage
from drkm.inference.subspace import Components
from drkm.kernels import RBF
from drkm.kernels.base import Room
from drkm.problem.eigen import leading_eigenpairs

N = 3000
TOL = 1e-8
LOOPED = 300
ALONE = 60


def loop(components: Components, coordinates: torch.Tensor) -> np.ndarray:
    """Iterate Mika's fixed point one point at a time in numpy: vectors of n numbers, nothing computed twice."""
    samples = in_memory(components.X)
    origin = samples.mean(dim=0).numpy()
    X = samples.numpy() - origin
    n, d = X.shape
    Xt = np.ascontiguousarray(X.T)
    sigma2 = components.kernel.bandwidth
    # Stored as rows of n numbers: products with rows are twice as fast as with columns.
    factors = np.concatenate([Xt / sigma2, -0.5 * (Xt**2).sum(0, keepdims=True) / sigma2, np.ones((1, n))])
    augmented = np.concatenate([Xt, np.ones((1, n))])
    Ht, begin = components.H.T.contiguous().numpy(), components.nearest_training_point(coordinates)[0].numpy()
    out, query = np.empty((len(coordinates), d)), np.ones(d + 2)
    beta, k, weighted = np.empty(n), np.empty(n), np.empty((d + 1, n))
    near = (TOL * sigma2**0.5) ** 2
    for i, a in enumerate(coordinates.numpy()):
        np.multiply(augmented, np.dot(a, Ht, out=beta), out=weighted)
        x = X[begin[i]]
        for _ in range(5000):
            query[:d] = x
            query[-1] = x.dot(x) * (-0.5 / sigma2)
            np.exp(np.dot(query, factors, out=k), out=k)
            sums = weighted.dot(k)
            new = sums[:d] / sums[d]
            step = new - x
            x = new
            if step.dot(step) <= near:
                break
        out[i] = x
    return out + origin


def seconds(*rivals: Callable[..., object], repeats: int = 5) -> list[float]:
    """Return the shortest time of each, measured in turns, so that other work on the machine affects all of them."""
    best = [float("inf")] * len(rivals)
    for _ in range(repeats):
        for i, work in enumerate(rivals):
            start = time.perf_counter()
            work()
            best[i] = min(best[i], time.perf_counter() - start)
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
        batched, looped, one = seconds(
            lambda c=components, a=a: preimage(c, a, tol=TOL),
            lambda c=components, a=a: loop(c, a[:LOOPED]),
            lambda c=components, a=a: preimage(c, a[:ALONE], tol=TOL, batch_size=1),
        )
        looped, one = looped * N / LOOPED, one * N / ALONE
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
    """Return the bytes of the largest block of kernel values in a sweep, from the rows passed to the kernel."""
    largest = 0

    class Counting(RBF):
        def jet(self, exponent: torch.Tensor, order: int, room: Room = None) -> tuple[torch.Tensor, ...]:
            nonlocal largest
            largest = max(largest, exponent.nbytes)
            return super().jet(exponent, order, room)

    X = torch.from_numpy(make_square_spiral(N, noise=0.1, random_state=0)[0])
    components = Components(Counting(0.05), X, torch.ones(N, 1).double() / N**0.5)
    rows = [components.coordinates(components.kernel(part, X)) for part in X.split(64)]
    largest = 0
    preimage(components, torch.cat(rows))
    return largest


if __name__ == "__main__":
    main()
