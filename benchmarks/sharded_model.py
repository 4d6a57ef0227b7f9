"""The cost model of sharded fits: what an iteration exchanges, and how long it takes on P processes.

python -m benchmarks.sharded_model                                    the cells of docs/scaling-sharded.md
python -m benchmarks.sharded_model --n 1e8 --processes 64 --gradient 0.05

An iteration of L-BFGS takes one gradient of n/P samples in each process, and exchanges a few blocks whose size does not
depend on n: ΦᵀA of every layer, S×S matrices, the inner products of the stored pairs. With all-reduce every process
sends and receives 2(P-1)/P times each block. The time of a gradient is given as measured on one device (`--gradient`,
in seconds, for `--measured` samples) and taken as proportional to the samples.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

#: pairs that L-BFGS keeps
MEMORY = 10
#: exchanges of an iteration with one trial of the line search: gradient 3, retraction 1, multipliers and norms 2,
#: two loops 2, projection 1, slope and norms 2, new pair 2, clock and stop 2
EXCHANGES = 15
#: gradients an iteration: a few line searches need a second trial
TRIALS = 1.07


@dataclass
class Model:
    """A fit of n samples with s components, m landmarks and F Fourier features a deep layer, on P processes."""

    n: float
    processes: int
    m: int = 2000
    features: int = 2000
    sizes: tuple[int, ...] = (10, 5)
    item: int = 4

    @property
    def block_bytes(self) -> float:
        """ΦᵀA of all layers: the first in the precision of the fit, the deep ones, which are summed in float64."""
        return self.item * self.m * self.sizes[0] + 8 * self.features * sum(self.sizes[1:])

    @property
    def small_bytes(self) -> float:
        """S×S matrices (retraction, multipliers, projection), products of pairs, and numbers, in float64."""
        S = sum(self.sizes)
        return 8 * (3 * S**2 + MEMORY * (MEMORY + 1) + MEMORY + 1 + 10)

    @property
    def bytes(self) -> float:
        """What a process contributes to the exchanges of an iteration."""
        return TRIALS * self.block_bytes + self.small_bytes

    @property
    def feature_bytes(self) -> float:
        """What a process keeps of the first layer."""
        return self.n / self.processes * self.m * self.item

    def seconds(self, gradient: float, latency: float, bandwidth: float) -> tuple[float, float]:
        """Return the time of an iteration for computing and for exchanging.

        `gradient` is the time for one sample on one process.
        """
        wire = 2 * (self.processes - 1) / self.processes * self.bytes / bandwidth
        exchanging = EXCHANGES * latency + wire if self.processes > 1 else 0.0
        return TRIALS * gradient * self.n / self.processes, exchanging


def main() -> None:
    parser = argparse.ArgumentParser(description="What an iteration of a sharded fit exchanges and takes.")
    parser.add_argument("--n", type=float, nargs="+", default=[1e6, 1e7, 1e8])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--m", type=int, default=2000)
    parser.add_argument("--features", type=int, default=2000)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 5])
    parser.add_argument("--item", type=int, default=4, help="bytes of a number: 4 on a GPU, 8 on a CPU")
    parser.add_argument("--gradient", type=float, default=None, help="measured seconds of a gradient on one device")
    parser.add_argument("--measured", type=float, default=1e6, help="number of samples it was measured with")
    parser.add_argument("--latency", type=float, default=1e-4, help="seconds of a small all-reduce")
    parser.add_argument("--bandwidth", type=float, default=2.5e10, help="bytes a second of one process to the next")
    parser.add_argument("--iterations", type=int, default=300)
    options = parser.parse_args()
    heads = ["n", "processes", "features kept, GB a process", "exchanged, kB an iteration"]
    if options.gradient is not None:
        heads += ["computing, ms an iteration", "exchanging, ms", f"{options.iterations} iterations, s"]
    print(f"| {' | '.join(heads)} |\n|" + "---:|" * len(heads))
    for n in options.n:
        for processes in options.processes:
            model = Model(n, processes, options.m, options.features, tuple(options.sizes), options.item)
            cells = [f"{n:.0e}", str(processes), f"{model.feature_bytes / 1e9:.2f}", f"{model.bytes / 1e3:.0f}"]
            if options.gradient is not None:
                per_sample = options.gradient / options.measured
                computing, exchanging = model.seconds(per_sample, options.latency, options.bandwidth)
                total = options.iterations * (computing + exchanging)
                cells += [f"{1e3 * computing:.1f}", f"{1e3 * exchanging:.2f}", f"{total:.1f}"]
            print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
