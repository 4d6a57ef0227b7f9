"""The overhead of runner and store: trivial runs, reopening, and runs of a fifth of a second.

python -m benchmarks runner

Besides wall-clock time it prints the processor time of the runner's own process, which other work on the machine does
not change.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from drkm.runs.configuration import Configuration
from drkm.runs.runner import sweep
from drkm.runs.store import Store
from drkm.runs.tasks import Task, TaskTable

TRIVIAL = 10_000
RUNS, SECONDS = 200, 0.2
#: number of alternations between a plain loop and a sweep, so that other work affects both
TURNS = 10


def probe(parameters: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return a digest that takes `rounds` passes over a block to compute."""
    digest = hashlib.sha256(f"{seed}".encode())
    for _ in range(parameters["rounds"]):
        digest.update(BLOCK)
    return {"digest": digest.hexdigest()}


BLOCK = bytes(1 << 16)
TASKS = TaskTable(f"{__name__}:TASKS", {"probe": Task(f"{__name__}:probe")})


def cost(work: Callable[..., object]) -> tuple[float, float]:
    """Return wall-clock and processor seconds of a call in this process."""
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - processor


def probes(count: int, rounds: int) -> list[Configuration]:
    return [Configuration("probe", {"rounds": rounds}, seed) for seed in range(count)]


def row(what: str, took: tuple[float, float], remark: str) -> None:
    print(f"| {what} | {took[0]:.2f} s | {took[1]:.2f} s | {remark} |", flush=True)


def trivial(folder: Path) -> None:
    """Print the time of many runs that do nothing, and of typical operations on a store that holds them."""
    runs = probes(TRIVIAL, 0)
    for jobs, where in ((1, "this process"), (2, "2 processes")):
        with Store(folder / f"trivial-{jobs}.sqlite", TASKS) as store:
            took = cost(lambda jobs=jobs, store=store: sweep(runs, store, jobs=jobs, progress=False))
        row(f"{TRIVIAL:,} trivial runs, {where}", took, f"{1e3 * took[1] / TRIVIAL:.2f} ms per run")
    path = folder / "trivial-1.sqlite"

    def reopen() -> None:
        with Store(path, TASKS) as store:
            assert store.counts()[0].done == TRIVIAL

    def again() -> None:
        with Store(path, TASKS) as store:
            assert sweep(runs, store, progress=False).computed == 0

    def read() -> None:
        with Store(path, TASKS, readonly=True) as store:
            assert len(store.results(runs)) == TRIVIAL

    row("reopen it and count", cost(reopen), f"{path.stat().st_size / 1e6:.1f} MB")
    row("sweep again: nothing is missing", cost(again), "")
    row("read all results", cost(read), "")


def overhead(folder: Path, rounds: int) -> None:
    """Print the time of a sweep beyond that of the same runs in a plain loop."""
    runs, step = probes(RUNS, rounds), RUNS // TURNS
    plain, swept = [0.0, 0.0], [0.0, 0.0]
    with Store(folder / "overhead.sqlite", TASKS) as store:
        for start in range(0, RUNS, step):
            part = runs[start : start + step]
            for total, work in (
                (plain, lambda part=part: [TASKS.perform(run) for run in part]),
                (swept, lambda part=part: sweep(part, store, progress=False)),
            ):
                took = cost(work)
                total[0], total[1] = total[0] + took[0], total[1] + took[1]
    row(f"{RUNS} runs of {plain[1] / RUNS:.2f} s, plain loop", (plain[0], plain[1]), "")
    row(f"the same in {TURNS} sweeps, this process", (swept[0], swept[1]), f"{100 * (swept[1] / plain[1] - 1):+.2f} %")


def processes(folder: Path, rounds: int, jobs: int) -> None:
    """Print the processor time of a runner with worker processes, and the computing time that the store recorded."""
    with Store(folder / "processes.sqlite", TASKS) as store:
        took = cost(lambda: sweep(probes(RUNS, rounds), store, jobs=jobs, progress=False))
        computing = store.counts()[0].seconds
    idle = 100 * (1 - computing / jobs / took[0])
    remark = f"runner {100 * took[1] / computing:.2f} %, workers idle or starting {idle:.1f} %"
    row(f"{RUNS} such runs, {jobs} processes", took, remark)


def main() -> None:
    import torch  # noqa: F401 - every real task needs it; its import is not the runner's

    rounds = 100
    _, processor = cost(lambda: TASKS.perform(Configuration("probe", {"rounds": 10 * rounds})))
    rounds = round(10 * rounds * SECONDS / processor)
    print("| | clock | processor | |")
    print("|---|---:|---:|---|")
    with tempfile.TemporaryDirectory() as folder:
        trivial(Path(folder))
        overhead(Path(folder), rounds)
        processes(Path(folder), rounds, 2)


if __name__ == "__main__":
    main()
