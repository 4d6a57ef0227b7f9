"""The runs of experiments: status and merge."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from drkm.cli._help import examples
from drkm.cli._options import Json, print_json
from drkm.cli._outcome import say, say_table, warn
from drkm.wording import counted, duration

STATUS_EXAMPLES = examples(
    "drkm status",
    "drkm status --store results/runs.sqlite --json",
)
MERGE_EXAMPLES = examples(
    "drkm merge results/runs.sqlite from-the-gpu.sqlite",
)
_WIDTH = 100


def status(
    store: Annotated[Path, typer.Option(metavar="FILE", help="File of the runs.")] = Path("results/runs.sqlite"),
    json: Json = False,
) -> None:
    """Say how far the runs are, and why some failed.

    Running are those of a runner that is alive, interrupted those of one that is not: the next one computes them.
    """
    from drkm.runs.store import RECENT, Store

    with Store(store, readonly=True) as opened:
        counts, failures = opened.counts(), opened.failures()
    if json:
        print_json({"tasks": [asdict(entry) for entry in counts], "failures": [_entry(each) for each in failures]})
        return
    heads = ("task", "done", "failed", "running", "interrupted", f"last {RECENT / 60:.0f} min", "computing time")
    rows = [
        (c.task, *map(str, (c.done, c.failed, c.running, c.interrupted, c.recent)), duration(c.seconds)) for c in counts
    ]
    say_table([heads, *rows])
    for failure in failures:
        run = failure.configuration
        named = " ".join(f"{name}={value}" for name, value in run.parameters.items())
        say(f"\nfailed: {run.task} {named} seed={run.seed}\n  {failure.reason[:_WIDTH]}")


def merge(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="File that receives the runs.", show_default=False)],
    others: Annotated[
        list[Path], typer.Argument(metavar="OTHER", help="Files with runs made elsewhere.", show_default=False)
    ],
    json: Json = False,
) -> None:
    """Copy the runs of other stores into one.

    A result replaces a failed run, never another result. Runs that both have done with different results are named.
    Runs that are damaged are left out.
    """
    from drkm.runs.merging import merge as copy_runs
    from drkm.runs.store import Store

    for other in others:
        # All are looked at before the first is copied.
        Store(other, readonly=True).close()
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
            summary.append(
                {
                    "other": other,
                    "added": merged.added,
                    "shared": merged.shared,
                    "damaged": merged.damaged,
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
