"""The end of the page: which runs were made, with which seeds and versions, on which hardware, and for how long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drkm.experiments.report.blocks import folded, table_block
from drkm.experiments.report.chapters import Chapter, Report
from drkm.experiments.section import ResultTable
from drkm.pages.markup import Markup, element
from drkm.wording import duration

#: what is shown of an environment, in this order; the name of the machine stays private
SHOWN = (
    "processor",
    "device",
    "cores",
    "threads",
    "system",
    "python",
    "drkm",
    "torch",
    "numpy",
    "scipy",
    "scikit-learn",
)


def provenance(report: Report) -> Markup:
    """Return the chapter about the runs."""
    runs = ResultTable(
        "runs", "Runs at this scale, with the computing time of the finished ones.", list(map(_run, report.chapters))
    )
    machines = ResultTable("environments", "What the finished runs ran on.", list(map(_machine, report.environments)))
    return element(
        "footer",
        element("h2", "Configuration, versions, hardware, run time", id="provenance"),
        folded(
            "Runs, seeds and machines",
            element(
                "p",
                "Each result is kept under a key made of its configuration, the checksum of its data, its seed and the "
                "version of the code: what is shown here is what this version computes.",
            ),
            (table_block(table) for table in (runs, machines) if table.rows),
        ),
    )


def _run(chapter: Chapter) -> dict[str, Any]:
    return {
        "experiment": chapter.section.title,
        "runs": chapter.expected,
        "finished": chapter.finished,
        "failed": len(chapter.failed),
        "seeds": ", ".join(str(seed) for seed in chapter.seeds) or None,
        "computing time": duration(chapter.seconds) if chapter.finished else None,
    }


def _machine(environment: Mapping[str, Any]) -> dict[str, Any]:
    return {"runs": environment.get("runs"), **{name: environment.get(name) for name in SHOWN}}
