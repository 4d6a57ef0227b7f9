"""The verdicts as lines of a terminal: a table of their numbers, and the claims of an experiment that stands alone."""

from __future__ import annotations

from drkm.experiments.report.blocks import SIGNS
from drkm.experiments.report.chapters import Report, verdicts
from drkm.experiments.section import Claim, Verdict


def heading(report: Report) -> list[str]:
    """Return what must be known before the verdicts are read."""
    return [f"variant {report.variant}: not judged as the paper's settings"] if report.variant else []


def verdict_rows(report: Report) -> list[tuple[str, ...]]:
    """Return how many claims of each experiment have which verdict, with names above and, of several, sums below."""
    judged = [chapter for chapter in report.chapters if chapter.section.claims]
    rows = [(chapter.section.name, verdicts([chapter])) for chapter in judged]
    if len(rows) > 1:
        rows.append(("all", verdicts(judged)))
    heads = ("claims", *(f"{SIGNS[verdict]} {verdict.value}" for verdict in Verdict))
    return [heads, *((name, *(str(counts[verdict]) for verdict in Verdict)) for name, counts in rows)]


def claim_lines(report: Report) -> list[str]:
    """Return the claims of the only experiment of a report, each with its verdict and the numbers behind it."""
    if len(report.chapters) != 1:
        return []
    return [_line(claim) for claim in report.chapters[0].section.claims]


def _line(claim: Claim) -> str:
    published = f", published {claim.published}" if claim.published else ""
    text = claim.text.strip().removesuffix(".")
    return " ".join(f"{SIGNS[claim.verdict]} {text}: ours {claim.measured}{published}".split())
