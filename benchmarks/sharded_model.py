"""The cost model of sharded fits: the bytes that an iteration exchanges, and its time on P processes.

python -m benchmarks.sharded_model                       10⁶ to 10⁸ samples on 1 to 64 GPUs, at the rates of an H200
python -m benchmarks.sharded_model --gradient 0.1        the same from a gradient measured on one GPU (n = 1,000,000)
python -m benchmarks.sharded_model --exact --n 1e6 1e7 --processes 1 8 --d 50    exact products, K_1 recomputed on GPUs
python -m benchmarks.sharded_model --exact --tiles --n 1e6 1e7 --processes 1 8 --d 50    the same in tiles, by torch
python -m benchmarks.sharded_model --n 5e4 --processes 2 --m 1000 --features 1000 --dtype float64    the bytes of a fit

An iteration of L-BFGS takes one gradient of n/P samples in each process, and exchanges a few blocks whose size does not
depend on n: ΦᵀA of every layer, S×S matrices, the inner products of the stored pairs. With all-reduce every process
sends and receives 2(P-1)/P times each block.

The time of a gradient is proportional to the number of samples: measured (`--gradient` seconds for `--measured`
samples), or else a lower bound: the operations and bytes of `Strategy.cost` at the peak rates of the device.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import torch

from drkm.gram import Fourier, Nystroem, Workload
from drkm.gram.ring_split import PASSED
from drkm.gram.sharded import PASSED as PASSED_TILES
from drkm.gram.split import halves_bytes
from drkm.kernels import RBF

#: pairs that L-BFGS keeps
MEMORY = 10
#: exchanges of an iteration with one trial of the line search: gradient 3, retraction 1, multipliers and norms 2,
#: two loops 2, projection 1, slope and norms 2, new pair 2, clock and stop 2
EXCHANGES = 15
#: blocks of the Krylov basis of a start
KRYLOV_BLOCKS = 8
#: gradients per iteration: a few line searches need a second trial
TRIALS = 1.1
#: seconds of a product of 32 columns over n², n = 10⁶ and d = 50, one process on one H200: fused, and in tiles by torch
PAIR, TILED_PAIR = 1.09e-12, 18.2e-12


@dataclass
class Model:
    """A fit of n samples on P processes."""

    n: float
    processes: int
    options: argparse.Namespace

    @property
    def bytes(self) -> float:
        """The bytes that a process contributes to the exchanges of an iteration.

        Sums over samples are exchanged in float64: ΦᵀA of every layer, three S×S matrices (retraction, multipliers,
        projection), the products of pairs, and single numbers.
        """
        asked, S = self.options, sum(self.options.sizes)
        blocks = asked.m * asked.sizes[0] + asked.features * sum(asked.sizes[1:])
        small = 3 * S**2 + MEMORY * (MEMORY + 1) + MEMORY + 1 + 10
        return 8 * (TRIALS * blocks + small)

    def cost(self):
        """The cost of one process for its own samples."""
        asked = self.options
        kernels = (RBF(1.0),) * len(asked.sizes)
        rows = -(-int(self.n) // self.processes)
        work = Workload(rows, asked.d, tuple(asked.sizes), kernels, getattr(torch, asked.dtype))
        return Nystroem(asked.m, deep=Fourier(asked.features)).cost(work)

    @property
    def computing(self) -> float:
        """Seconds of an iteration without exchanges."""
        asked, cost = self.options, self.cost()
        if asked.gradient is not None:
            return TRIALS * asked.gradient * self.n / self.processes / asked.measured
        return TRIALS * max(cost.flops / asked.flops, cost.traffic / asked.memory)

    @property
    def exchanging(self) -> float:
        """Seconds of the exchanges of an iteration."""
        if self.processes == 1:
            return 0.0
        wire = 2 * (self.processes - 1) / self.processes * self.bytes
        return EXCHANGES * self.options.latency + wire / self.options.bandwidth


@dataclass
class Product:
    """One exact product KA of n samples on P processes: the bytes that a process holds and passes on."""

    held: float
    passed: float

    @classmethod
    def fused(cls, n: float, processes: int, d: int, width: int, item: int) -> Product:
        """Blocks of points and of A visit every process, which recomputes its rows of K_1."""
        rows = -(-int(n) // processes)
        visiting = 0 if processes == 1 else halves_bytes(rows, d)
        blocks = 1 if processes == 1 else PASSED
        held = item * rows * (d + blocks * (d + width)) + halves_bytes(rows, d) + visiting
        return cls(held, (processes - 1) * item * rows * (d + width))

    @classmethod
    def tiled(cls, n: float, processes: int, d: int, width: int, item: int) -> Product:
        """Blocks visit half of the other processes, and what tiles add to the rows of others is handed over."""
        rows = n / processes
        return cls(item * rows * PASSED_TILES * d, processes // 2 * item * rows * (d + 2 * width))


def exact(asked: argparse.Namespace) -> None:
    """Print the cost of one exact product KA and of a kernel PCA start; points travel in a ring."""
    width = asked.sizes[0] + max(5, asked.sizes[0] // 2)
    item = getattr(torch, asked.dtype).itemsize
    form, pair = (Product.tiled, TILED_PAIR) if asked.tiles else (Product.fused, PAIR)
    heads = ["n", "processes", "memory, GB per process", "passed on, GB per product", "computing, s", "passing, s"]
    heads += [f"{asked.products} products, min"]
    print(f"| {' | '.join(heads)} |\n|" + "---:|" * len(heads))
    for n in asked.n:
        for processes in asked.processes:
            product = form(n, processes, asked.d, width, item)
            # With the Krylov basis and its image, and the samples of all, which each process has at the end.
            held = product.held + item * n / processes * 2 * KRYLOV_BLOCKS * width
            held += item * (n - n / processes) * asked.d
            # In tiles, one process forms half of the n² values, and P processes divide these among them.
            computing, passing = (asked.pair or pair) * n**2 / processes, product.passed / asked.bandwidth
            # Blocks travel while others are used, so that the shorter of the two times is hidden.
            whole = asked.products * max(computing, passing) / 60
            cells = (f"{n:.0e}", f"{processes}", f"{held / 1e9:.1f}", f"{product.passed / 1e9:.1f}", f"{computing:.1f}")
            print(f"| {' | '.join(cells)} | {passing:.2f} | {whole:.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description="What an iteration of a sharded fit exchanges and takes.")
    parser.add_argument("--exact", action="store_true", help="exact operators")
    parser.add_argument("--tiles", action="store_true", help="exact operators in tiles, not recomputed on tensor cores")
    parser.add_argument("--pair", type=float, default=None, help="seconds of a product over n²")
    parser.add_argument("--products", type=int, default=14, help="products of a block that kernel PCA takes")
    parser.add_argument("--n", type=float, nargs="+", default=[1e6, 1e7, 1e8])
    parser.add_argument("--d", type=int, default=4096)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--m", type=int, default=2000, help="landmarks")
    parser.add_argument("--features", type=int, default=2000, help="Fourier features a deep layer")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 5])
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    parser.add_argument("--gradient", type=float, default=None, help="measured seconds of a gradient on one device")
    parser.add_argument("--measured", type=float, default=1e6, help="number of samples it was measured with")
    parser.add_argument("--flops", type=float, default=6.7e13, help="operations a second")
    parser.add_argument("--memory", type=float, default=4.8e12, help="bytes a second from memory")
    parser.add_argument("--latency", type=float, default=1e-4, help="seconds of a small exchange")
    parser.add_argument("--bandwidth", type=float, default=2.5e10, help="bytes a second from a process to the next")
    parser.add_argument("--iterations", type=int, default=300)
    asked = parser.parse_args()
    if asked.exact:
        exact(asked)
        return
    heads = ["n", "processes", "memory, GB per process", "exchanged, kB per iteration", "computing, ms per iteration"]
    heads += ["exchanging, ms", f"{asked.iterations} iterations, s", "before them, s"]
    print(f"| {' | '.join(heads)} |\n|" + "---:|" * len(heads))
    for n in asked.n:
        for processes in asked.processes:
            model = Model(n, processes, asked)
            cost, computing, exchanging = model.cost(), model.computing, model.exchanging
            cells = [f"{n:.0e}", f"{processes}", f"{cost.bytes / 1e9:.1f}", f"{model.bytes / 1e3:.0f}"]
            cells += [f"{1e3 * computing:.1f}", f"{1e3 * exchanging:.2f}"]
            cells += [f"{asked.iterations * (computing + exchanging):.1f}", f"{cost.setup / asked.flops:.1f}"]
            print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
