"""The results as text: Markdown for the documentation, a wiki or an issue, and lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from drkm.experiments.report.blocks import SIGNS, VARIANT
from drkm.experiments.report.chapters import Chapter, Report, verdicts
from drkm.experiments.report.provenance import SHOWN
from drkm.experiments.report.summary import in_short
from drkm.experiments.section import Claim, Verdict
from drkm.wording import counted, markdown_table

COLUMNS = ("claim", "published", "ours", "verdict")
READING = """\
A dash instead of what was published marks a claim of our own. "As published" is the recipe of the paper, "drkm
defaults" is `ConstrDRKM` as it is, kernel PCA is one layer of it with as many components. Numbers after ± are
standard deviations, those in square brackets 95 % intervals of differences of means. [How a verdict is
reached](studies.md#how-a-verdict-is-reached) says which of the rules were fixed before these results were seen, and
which were not; a verdict says nothing beyond this scale."""


def listing(report: Report) -> str:
    """Return Markdown: the number of claims that held, the sentences that the verdicts support, and all claims."""
    title = f"variant {report.variant}" if report.variant else "what of the paper held"
    lines = [f"# Results: {title}", "", *([VARIANT, ""] if report.variant else []), _counts(report), READING, ""]
    lines += [f"    {command}" for command in _commands(report)]
    # The summary is about the paper's settings only.
    short = [] if report.variant else ["## In short", "", *_in_short(report.chapters), ""]
    lines += ["", *short, "## Claim by claim"]
    for chapter in report.chapters:
        lines += ["", *_chapter(chapter)]
    lines += ["", *_made_on(report)]
    return "\n".join(lines) + "\n"


def _counts(report: Report) -> str:
    every = [claim for chapter in report.chapters for claim in chapter.section.claims]
    paper = [claim.verdict for claim in every if claim.published]
    held, failed, unsure = (verdicts(report.chapters)[verdict] for verdict in Verdict)
    theirs, not_theirs, open_ = (paper.count(verdict) for verdict in Verdict)
    return (
        f"Of the {len(paper)} claims that the paper makes, {theirs} held, {not_theirs} did not and {open_} cannot be "
        f"told. With our own, of {len(every)} claims, {held} held, {failed} did not and {unsure} cannot be told. All "
        f"are judged at scale `{report.scale}`, by {report.runs} runs of drkm {report.version}."
    )


def _commands(report: Report) -> Iterator[str]:
    options = report.options or f"--scale {report.scale}"
    yield f"drkm reproduce all {options}"
    yield f"drkm report {options} -o docs/results.md      # this page; results.html has figures too"


def _made_on(report: Report) -> Iterator[str]:
    if report.environments:
        yield "## Machines"
        yield ""
    for one in report.environments:
        shown = ", ".join(f"{name} {one[name]}" for name in SHOWN if one.get(name) is not None)
        yield f"- {one.get('runs')} runs: {shown}"


def _in_short(chapters: Sequence[Chapter]) -> Iterator[str]:
    kept, left_out = in_short(chapters)
    yield from (f"- {sentence}" for sentence in (*kept, left_out) if sentence)


def _chapter(chapter: Chapter) -> Iterator[str]:
    yield f"### {chapter.section.title}"
    yield ""
    yield f"`{chapter.section.name}`, {chapter.finished} of {chapter.expected} runs."
    if chapter.section.claims:
        counts = verdicts([chapter])
        told = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])
        # <details> folds on code hosts and on the documentation site.
        yield from ("", "<details>", f"<summary>{counted(counts.total(), 'claim')}: {told}</summary>", "")
        yield markdown_table([COLUMNS, *map(_cells, chapter.section.claims)])
        yield from _undecided(chapter.section.claims)
        yield from ("", "</details>")


def _undecided(claims: Iterable[Claim]) -> Iterator[str]:
    """Write what each undecided claim would need."""
    found = [claim for claim in claims if claim.verdict is Verdict.UNDECIDED]
    if found:
        yield from ("", "What it would take to tell:", "")
    yield from (" ".join(f"- {claim.text.rstrip('.')}: {claim.why}".split()) for claim in found)


def _cells(claim: Claim) -> tuple[str, ...]:
    return claim.text, claim.published or "–", claim.measured, f"{SIGNS[claim.verdict]} {claim.verdict.value}"


def heading(report: Report) -> list[str]:
    """Return what readers must know before the verdicts."""
    return [f"variant {report.variant}: not judged as the paper's settings"] if report.variant else []


def verdict_rows(report: Report) -> list[tuple[str, ...]]:
    """Return the number of claims per experiment and verdict, with a header and, for several experiments, totals."""
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
    return [_claim_line(claim) for claim in report.chapters[0].section.claims]


def _claim_line(claim: Claim) -> str:
    published = f", published {claim.published}" if claim.published else ""
    text = claim.text.strip().removesuffix(".")
    return " ".join(f"{SIGNS[claim.verdict]} {text}: ours {claim.measured}{published}".split())
