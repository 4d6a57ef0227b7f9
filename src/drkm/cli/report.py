"""The commands `drkm report` and `drkm pack`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from drkm.cli._help import examples
from drkm.cli._options import Force, SeedsOption, SetOption, seeds_of, variant_of
from drkm.cli._outcome import say, warn
from drkm.wording import counted

EXAMPLES = examples(
    "drkm report",
    "drkm report table1 table2 --scale medium -o medium.html",
    "drkm report --scale medium -o claims.md     # the summary and the claims",
    "drkm report --store docs/results.xz -o results.html",
)
PACK_EXAMPLES = examples(
    "drkm pack --scale medium -o results.xz",
)


def report(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]", help="Experiments to show, by the names of drkm reproduce.", show_default="all"
        ),
    ] = None,
    store: Annotated[Path, typer.Option(metavar="FILE", help="File of the runs, or one that drkm pack wrote.")] = Path(
        "results/runs.sqlite"
    ),
    scale: Annotated[
        str | None,
        typer.Option(
            "--scale",
            metavar="SCALE",
            help="quick, medium or paper.",
            show_default="that of a packed file, else quick",
        ),
    ] = None,
    seeds: SeedsOption = None,
    set_: SetOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The page to write, or a .md file for the summary and the claims.",
            show_default="SCALE/report.html beside the runs",
        ),
    ] = None,
) -> None:
    """Write one HTML page of all results of the runs in a store.

    Claims with their verdicts, figures, tables, configuration, versions, hardware and run time. The page needs neither
    a network nor another file, works on a phone and can be printed. It lists the runs that are missing.
    """
    from drkm.experiments.report import write_report
    from drkm.experiments.request import Request
    from drkm.files import called
    from drkm.runs.packing import about, is_packed

    known = about(store) if is_packed(store) else {}
    for name in ("scale", "seeds"):
        if not isinstance(known.get(name), str | None):
            raise ValueError(f"store: {store} is damaged (its {name} should be text, got {known[name]!r:.50})")
    asked = seeds_of(seeds or known.get("seeds"))
    request = Request(names or ["all"], scale or known.get("scale", "quick"), asked, variant_of(set_))
    with called("out"):
        say(write_report(store, out or store.parent / request.folder / "report.html", request))


def pack(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write.")],
    store: Annotated[Path, typer.Option(metavar="FILE", help="File of the runs.")] = Path("results/runs.sqlite"),
    scale: Annotated[str, typer.Option("--scale", metavar="SCALE", help="quick, medium or paper.")] = "quick",
    seeds: SeedsOption = None,
    force: Force = False,
) -> None:
    """Write finished runs into one small file.

    It holds the runs of all experiments at one scale, is read-only, and can replace a store in 'drkm report --store'
    and 'drkm merge'.
    """
    from drkm import files
    from drkm.experiments import registry
    from drkm.experiments.request import Request
    from drkm.runs.packing import pack as write
    from drkm.runs.store import Store

    files.check_target(out, force=force, suffixes=(".xz",))
    asked = seeds_of(seeds)
    runs = {run for group in Request(["all"], scale, asked).runs.values() for run in group}
    with files.called("out"), Store(store, registry.TASKS, readonly=True) as opened:
        opened.check()
        keys = opened.keys(runs)
        rows = [row for row in opened.finished()[0] if row["key"] in keys and row["status"] == "done"]
        write(rows, out, {"scale": scale, "seeds": str(asked) if asked else None})
    missing = len(runs) - len(rows)
    say(f"{counted(len(rows), 'run')} in {out}, {out.stat().st_size / 1e6:.2f} MB")
    if missing:
        warn(f"{counted(missing, 'run')} of scale {scale} are not finished")
