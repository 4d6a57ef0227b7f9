"""The claims of a report as Markdown: for a README, a wiki or an issue, where a page of HTML does not go."""

from __future__ import annotations

from collections.abc import Iterator

from drkm.experiments.report.blocks import SIGNS
from drkm.experiments.report.chapters import Chapter, Report, verdicts
from drkm.experiments.section import Claim, Verdict


def listing(report: Report) -> str:
    """Return how many claims held, then a table of claims for each experiment."""
    counts = verdicts(report.chapters)
    summary = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict)
    lines = [f"Scale `{report.scale}`, {report.runs} runs, drkm {report.version}. Claims: {summary}."]
    for chapter in report.chapters:
        lines += ["", *_chapter(chapter)]
    return "\n".join(lines) + "\n"


def _chapter(chapter: Chapter) -> Iterator[str]:
    yield f"### {chapter.section.title}"
    yield ""
    yield f"`{chapter.section.name}`, {chapter.finished} of {chapter.expected} runs."
    if chapter.section.claims:
        yield ""
        yield "| claim | published | ours | verdict |"
        yield "|---|---|---|---|"
        yield from map(_row, chapter.section.claims)


def _row(claim: Claim) -> str:
    cells = (claim.text, claim.published or "–", claim.measured, f"{SIGNS[claim.verdict]} {claim.verdict.value}")
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"
