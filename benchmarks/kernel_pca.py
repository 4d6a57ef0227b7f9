"""KernelPCA against the best of scikit-learn's solvers: time of fit and transform, and memory, as ratios of one run.

python -m benchmarks.kernel_pca [--quick] [--samples 500 1000 …] [--features 30] [--components 10] [--threads 1 2]
                                [--noise]

Every cell is a process of its own with that many threads. Fits alternate and are repeated, and the least time counts,
by the clock and of the processor, which does not wait for others on a busy machine. A ratio above 1 is ours being
faster or smaller; that of processor time says more where others are busy, that of the clock where nobody is. Code paths
of other CPUs are chosen from outside: MKL_CBWR=COMPATIBLE, ATEN_CPU_CAPABILITY=default, OPENBLAS_CORETYPE=Haswell.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import itertools
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

SAMPLES, QUICK = (500, 1000, 3000, 5000, 10_000, 20_000), (500, 1000, 2000)
FEATURES, COMPONENTS, NEW = (30, 784), (10, 50), 1000
RIVALS = ("arpack", "randomized", "dense")
#: up to so many samples LAPACK finds the whole spectrum in the time of this table
DENSE = 3000
#: seconds that one cell repeats its fits for, and how often at most and, for few samples and for many, at least: the
#: first of several fits that take milliseconds is slower
LONG, MOST, LEAST = 20.0, 100, (8, 2)
#: seconds before a call is timed
PAUSE = 0.2
#: processes whose memory is looked at: the least counts, as pages of the system are large beside a small fit
MEMORY_RUNS = 3
#: samples of the fits before the one whose memory is looked at, and where Linux forgets the peak so far
WARM, RESET = 2000, Path("/proc/self/clear_refs")
PATHS = ("MKL_CBWR", "ATEN_CPU_CAPABILITY", "OPENBLAS_CORETYPE")
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def samples(n: int, d: int, noise: bool = False) -> np.ndarray:
    """Smooth functions of three uniform factors, with a little noise: the structured set with d features.

    With `noise` they are normally distributed, so that eigenvalues decay slowly.
    """
    rng = np.random.RandomState(0)
    if noise:
        return rng.randn(n, d)
    z, F, b = rng.rand(n, 3), 2 * rng.randn(3, 40), 6.28 * rng.rand(40)
    A, E = rng.randn(40, d), rng.randn(n, d)
    return np.cos(z @ F + b) @ A / np.sqrt(40) + 0.05 * E


def estimator(name: str, k: int) -> Any:
    if name == "drkm":
        from drkm import KernelPCA

        return KernelPCA(k, kernel="rbf", random_state=0, device="cpu")
    from sklearn.decomposition import KernelPCA as Theirs

    return Theirs(k, kernel="rbf", eigen_solver=name, random_state=0)


def seconds(call: Callable[..., object]) -> tuple[float, float]:
    """Return the time of a call by the clock and of the processor."""
    # Threads of OpenBLAS go on spinning for 100 ms after a call, and would slow down the next one, whoever makes it.
    time.sleep(PAUSE)
    wall, used = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - used


def times(n: int, d: int, k: int, long: float, noise: bool, rivals: Sequence[str] = RIVALS) -> dict[str, Any]:
    """Return the least times of fit and transform of everybody, in alternation."""
    X, new = np.split(samples(n + NEW, d, noise), [n])
    names = ["drkm", *(rival for rival in rivals if rival != "dense" or n <= DENSE)]
    models = {name: estimator(name, k) for name in names}
    fits: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    answers: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    began, rounds = time.perf_counter(), 0
    least = LEAST[n > DENSE]
    while rounds < least or (time.perf_counter() - began < long and rounds < MOST):
        # In one direction and the other: what runs before a call leaves caches and threads in another state.
        for name in names if rounds % 2 else reversed(names):
            model = models[name]
            fits[name].append(seconds(lambda model=model: model.fit(X)))
            answers[name].append(seconds(lambda model=model: model.transform(new)))
        rounds += 1
    others = [np.abs(models["drkm"].eigenvalues_ / models[name].eigenvalues_ - 1).max() for name in names[1:2]]
    shortest = {
        what: {name: _least(all_) for name, all_ in of.items()} for what, of in (("fit", fits), ("transform", answers))
    }
    return {**shortest, "apart": float(max(others, default=0.0))}


def _least(measured: list[tuple[float, float]]) -> list[float]:
    return [min(part) for part in zip(*measured, strict=True)]


def peak(name: str, n: int, d: int, k: int, noise: bool) -> int:
    """Return the bytes that one fit needs at its peak beyond the samples, after another of the same kind."""
    X = samples(n, d, noise)
    # What libraries load and set up when they are first used is no part of a fit.
    for _ in range(2):
        estimator(name, k).fit(X[:WARM])
    gc.collect()
    if not RESET.exists():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        estimator(name, k).fit(X)
        return 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    ctypes.CDLL(None).malloc_trim(0)
    RESET.write_text("5")
    before = _memory("VmRSS")
    estimator(name, k).fit(X)
    return _memory("VmHWM") - before


def _memory(what: str) -> int:
    """Return what Linux says of the memory of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(what))


def in_process(threads: int, seconds: float, noise: bool, *words: str) -> Any:
    """Return what a process of this module with so many threads prints."""
    environment = {**os.environ, **dict.fromkeys(THREADS, str(threads))}
    command = [sys.executable, "-m", "benchmarks.kernel_pca", "--seconds", str(seconds), *["--noise"] * noise, "--cell"]
    command += words
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    return next((line.partition(":")[2].strip() for line in lines if "model name" in line), platform.processor())


def table(cells: Iterable[tuple[int, int, int, int]], long: float, noise: bool) -> None:
    paths = {name: os.environ[name] for name in PATHS if name in os.environ}
    print(f"{cpu()}, {', '.join(f'{name}={value}' for name, value in paths.items()) or 'its own code paths'}\n")
    heads = ["n", "d", "k", "threads", "fit, s", "of the processor", "best rival", "fit, ratio", "of the processor"]
    heads += ["transform, ratio", "of the processor", "memory, ratio", "apart"]
    print(f"| {' | '.join(heads)} |\n|" + "---:|" * len(heads))
    for *shape, count in cells:
        cell = tuple(map(str, shape))
        try:
            found = in_process(count, long, noise, "times", *cell)
            memory = [_least_memory(count, noise, name, cell) for name in ("drkm", "arpack")]
        except subprocess.CalledProcessError as error:
            # X @ X.T by two threads of OpenBLAS 0.3.31 ends the process from 16,000 rows on, where a CPU has AVX-512.
            own = in_process(count, long, noise, "alone", *cell)["fit"]["drkm"]
            print(f"| {' | '.join(cell)} | {count} | {own[0]:.3f} | {own[1]:.3f} | none: signal {-error.returncode} |")
            continue
        own, (best, clock, used) = found["fit"].pop("drkm"), _best(found["fit"])
        answer, (_, *others) = found["transform"].pop("drkm"), _best(found["transform"])
        ratios = (clock / own[0], used / own[1], others[0] / answer[0], others[1] / answer[1])
        numbers = " | ".join(f"{ratio:.2f}" for ratio in (*ratios, memory[1] / max(memory[0], 1)))
        times_ = f"{own[0]:.3f} | {own[1]:.3f} | {best}"
        print(f"| {' | '.join(cell)} | {count} | {times_} | {numbers} | {found['apart']:.0e} |", flush=True)


def _least_memory(threads: int, noise: bool, name: str, cell: tuple[str, ...]) -> int:
    return min(in_process(threads, 0.0, noise, name, *cell) for _ in range(MEMORY_RUNS if int(cell[0]) <= WARM else 1))


def _best(rivals: dict[str, list[float]]) -> tuple[str, float, float]:
    """Return who needs the least of the processor, and the least of either time that any of them needs."""
    name = min(rivals, key=lambda name: rivals[name][1])
    clock, used = _least([(wall, own) for wall, own in rivals.values()])
    return name, clock, used


def main() -> None:
    parser = argparse.ArgumentParser(description="KernelPCA against scikit-learn's")
    parser.add_argument("--quick", action="store_true", help="small n alone")
    parser.add_argument("--samples", type=int, nargs="+", help="numbers of samples")
    parser.add_argument("--features", type=int, nargs="+", default=FEATURES)
    parser.add_argument("--components", type=int, nargs="+", default=COMPONENTS)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=LONG, help="time that each cell repeats its fits for")
    parser.add_argument("--noise", action="store_true", help="samples of noise, whose spectrum decays slowly")
    parser.add_argument("--cell", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        what, *cell = options.cell
        n, d, k = map(int, cell)
        if what in ("times", "alone"):
            print(json.dumps(times(n, d, k, options.seconds, options.noise, RIVALS if what == "times" else ())))
        else:
            print(json.dumps(peak(what, n, d, k, options.noise)))
        return
    sizes = options.samples or (QUICK if options.quick else SAMPLES)
    table(
        itertools.product(sizes, options.features, options.components, options.threads), options.seconds, options.noise
    )


if __name__ == "__main__":
    main()
