"""What runner and store cost: trivial runs, reopening, and the overhead on runs of a fifth of a second.

python -m benchmarks runner
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from drkm.experiments.configuration import Configuration
from drkm.experiments.runner import sweep
from drkm.experiments.store import Store
from drkm.experiments.tasks import perform

TRIVIAL = 10_000
RUNS, SECONDS = 200, 0.2


def seconds(work) -> float:
    clock = time.perf_counter()
    work()
    return time.perf_counter() - clock


def probes(count: int, rounds: int) -> list[Configuration]:
    return [Configuration("probe", {"rounds": rounds}, seed) for seed in range(count)]


def trivial(folder: Path, jobs: int) -> None:
    """Print the time of many runs that do nothing, and of everything one does with a store that holds them."""
    runs, path = probes(TRIVIAL, 0), folder / f"trivial-{jobs}.sqlite"
    with Store(path) as store:
        took = seconds(lambda: sweep(runs, store, jobs=jobs, progress=False))
    print(
        f"| {TRIVIAL:,} trivial runs, {_processes(jobs)} | {took:.1f} s | {1e3 * took / TRIVIAL:.2f} ms |", flush=True
    )
    if jobs > 1:
        return

    def reopen() -> None:
        with Store(path) as store:
            assert store.counts()[0].done == TRIVIAL

    def again() -> None:
        with Store(path) as store:
            assert sweep(runs, store, progress=False).computed == 0

    def read() -> None:
        with Store(path, readonly=True) as store:
            assert len(store.results(runs)) == TRIVIAL

    for name, work in (("reopen and count", reopen), ("sweep again", again), ("read all results", read)):
        took = seconds(work)
        print(f"| {name}, {TRIVIAL:,} runs | {took:.2f} s | {1e3 * took / TRIVIAL:.2f} ms |", flush=True)


def overhead(folder: Path, rounds: int) -> None:
    """Print what a sweep takes beyond the computing time of the same runs in a plain loop.

    Other work on the machine changes the pace by more than the overhead, so that both sides take turns.
    """
    plain = swept = 0.0
    runs = probes(RUNS, rounds)
    step = RUNS // 10
    for start in range(0, RUNS, step):
        part = runs[start : start + step]
        plain += seconds(lambda part=part: [perform(run) for run in part])
        with Store(folder / "overhead.sqlite") as store:
            swept += seconds(lambda part=part, store=store: sweep(part, store, progress=False))
    print(f"| {RUNS} runs of {plain / RUNS:.2f} s, plain loop | {plain:.2f} s | |")
    print(f"| the same as ten sweeps, this process | {swept:.2f} s | {100 * (swept / plain - 1):+.2f} % |", flush=True)


def processes(folder: Path, rounds: int, jobs: int) -> None:
    """Print what processes spend beyond the computing time that the store has recorded, their start included."""
    with Store(folder / "processes.sqlite") as store:
        took = seconds(lambda: sweep(probes(RUNS, rounds), store, jobs=jobs, progress=False))
        computing = store.counts()[0].seconds
    share = 100 * (jobs * took / computing - 1)
    print(f"| {RUNS} runs of {computing / RUNS:.2f} s, {jobs} processes | {took:.2f} s | {share:+.2f} % |", flush=True)


def main() -> None:
    import torch  # noqa: F401 - every real task needs it; its import is not the runner's

    rounds = 100
    rounds = round(rounds * SECONDS / seconds(lambda: perform(Configuration("probe", {"rounds": rounds}))))
    print("| | time | a run / overhead |")
    print("|---|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for jobs in (1, 2):
            trivial(Path(folder), jobs)
        overhead(Path(folder), rounds)
        processes(Path(folder), rounds, 2)


if __name__ == "__main__":
    main()
