"""The commands `drkm status` and `drkm merge`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drkm.cli._help import examples
from drkm.cli._options import Json, SeedsOption, SetOption, print_json, seeds_of, variant_of
from drkm.cli._outcome import say, say_table, warn
from drkm.wording import counted, duration

if TYPE_CHECKING:
    from drkm.experiments.progress import Progress
    from drkm.runs.store import Counts

STATUS_EXAMPLES = examples(
    "drkm status",
    "drkm status all --scale medium     # how many runs are missing, and the time left",
    "drkm status --store results/runs.sqlite --json",
)
MERGE_EXAMPLES = examples(
    "drkm merge results/runs.sqlite from-the-gpu.sqlite",
)
_WIDTH = 100


def status(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]",
            help="Experiments, or all: also show how many of their runs are missing, and the time left.",
            show_default=False,
        ),
    ] = None,
    store: Annotated[Path, typer.Option(metavar="FILE", help="File of the runs.")] = Path("results/runs.sqlite"),
    scale: Annotated[str, typer.Option("--scale", metavar="SCALE", help="quick, medium or paper.")] = "quick",
    seeds: SeedsOption = None,
    set_: SetOption = None,
    json: Json = False,
) -> None:
    """Show the progress of runs, and why some failed.

    "Running" runs belong to a runner that is alive, "interrupted" ones to one that is not; the next runner computes
    them. With the arguments of drkm reproduce, as in 'drkm status all --scale medium', it also estimates the remaining
    time.
    """
    from drkm.experiments.progress import progress
    from drkm.experiments.request import Request
    from drkm.runs.store import Store

    with Store(store, readonly=True) as opened:
        counts, failures = opened.counts(), opened.failures()
    asked = progress(store, Request(names, scale, seeds_of(seeds), variant_of(set_))) if names else []
    if json:
        told = {"tasks": [asdict(entry) for entry in counts], "failures": [_entry(each) for each in failures]}
        print_json({**told, **({"experiments": [asdict(entry) for entry in asked]} if names else {})})
        return
    say_table(_task_rows(counts))
    if asked:
        _tell_progress(asked, workers=sum(entry.running for entry in counts))
    for failure in failures:
        run = failure.configuration
        named = " ".join(f"{name}={value}" for name, value in run.parameters.items())
        say(f"\nfailed: {run.task} {named} seed={run.seed}\n  {failure.reason[:_WIDTH]}")


def _task_rows(counts: Sequence[Counts]) -> list[tuple[str, ...]]:
    """Return the runs of each task and, if there are several tasks, of all."""
    from drkm.runs.store import RECENT

    heads = ("task", "done", "failed", "running", "interrupted", f"last {RECENT / 60:.0f} min", "computing time")
    numbers = [(c.done, c.failed, c.running, c.interrupted, c.recent, c.seconds) for c in counts]
    names = [c.task for c in counts]
    if len(counts) > 1:
        numbers.append(tuple(map(sum, zip(*numbers, strict=True))))  # type: ignore[arg-type]
        names.append("all")
    rows = [(name, *map(str, row[:-1]), duration(row[-1])) for name, row in zip(names, numbers, strict=True)]
    return [heads, *rows]


def _tell_progress(asked: Sequence[Progress], workers: int) -> None:
    """Print the progress of experiments, and when the runs computed in parallel may finish."""
    *each, every = asked
    rows = [
        (p.name, f"{p.done} of {p.runs}", str(p.failed), str(p.missing)) for p in (each if len(each) < 2 else asked)
    ]
    say("")
    say_table([("experiment", "done", "failed", "missing"), *rows])
    if not every.missing:
        say("no run is missing")
        return
    if every.unlike == every.missing:
        say("time left: not known, no run like those that are missing is done")
        return
    rest = f", and {counted(every.unlike, 'run')} of a kind of which none is done" if every.unlike else ""
    side = f"{counted(workers, 'run')} at a time" if workers else "one run at a time, none is running"
    say(f"time left: about {duration(every.seconds_left / max(1, workers))} ({side}){rest}")


def merge(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="File that receives the runs.", show_default=False)],
    others: Annotated[
        list[Path], typer.Argument(metavar="OTHER", help="Files with runs made elsewhere.", show_default=False)
    ],
    json: Json = False,
) -> None:
    """Copy the runs of other stores into one store.

    A result replaces a failed run but never another result. Runs with different results in both stores are named.
    Damaged runs, and those in a part of a file that cannot be read, are left out.
    """
    from drkm.runs.merging import merge as copy_runs
    from drkm.runs.store import Store

    for other in others:
        # All stores are read before the first is copied and STORE is made.
        with Store(other, readonly=True) as source:
            rows, _, whole = source.finished()
        if not rows and not whole:
            raise ValueError(f"store: {other} is damaged, and none of its runs can be read")
    summary: list[dict[str, Any]] = []
    with Store(store) as opened:
        for other in others:
            merged = copy_runs(opened, other)
            for difference in merged.differences:
                warn(
                    f"{other} has another result of {difference.configuration.canonical()}"
                    f" (differs in {', '.join(difference.fields)}); the one in {store} is kept"
                )
            if merged.damaged:
                warn(f"{other}: {counted(merged.damaged, 'run')} damaged and left out: the next sweep computes them")
            if not merged.whole:
                warn(f"{other}: a part cannot be read, its runs are left out: the next sweep computes them")
            summary.append(
                {
                    "other": other,
                    "added": merged.added,
                    "shared": merged.shared,
                    "damaged": merged.damaged,
                    "whole": merged.whole,
                    "different": [difference.key for difference in merged.differences],
                }
            )
    if json:
        print_json({"merged": summary})
        return
    for entry in summary:
        say(
            f"{entry['other']}: {entry['added']} runs added, {entry['shared']} were there,"
            f" {len(entry['different'])} of them with another result"
        )


def _entry(failure: Any) -> dict[str, Any]:
    run = failure.configuration
    return {
        "task": run.task,
        "parameters": dict(run.parameters),
        "seed": run.seed,
        "reason": failure.reason,
        "traceback": failure.traceback,
        "attempts": failure.attempts,
    }
