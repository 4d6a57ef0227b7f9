"""From the chapters of a report to one HTML page."""

from __future__ import annotations

from collections.abc import Iterable

from drkm.experiments.report.blocks import (
    badge,
    claims_block,
    figure_block,
    paragraphs,
    prose,
    settings_block,
    table_block,
)
from drkm.experiments.report.chapters import Chapter, Report, verdicts
from drkm.experiments.report.provenance import provenance
from drkm.experiments.section import Verdict
from drkm.pages.assets import asset, theme
from drkm.pages.markup import Markup, element
from drkm.wording import counted

TITLE = "Deep restricted kernel machines: the paper, run again"
AUTHORS = "F. Tonin, P. Patrinos and J. A. K. Suykens"
PAPER = (
    "Unsupervised learning of disentangled representations in deep restricted kernel machines with orthogonality "
    "constraints"
)
JOURNAL = "Neural Networks 142 (2021)"
#: nothing is fetched and nothing is executed: what the page shows is in the page
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def page(report: Report) -> str:
    """Return the whole page."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{TITLE} ({report.scale})"),
        element("style", Markup(theme() + asset("drkm.experiments.report", "page.css"))),
    )
    shown = [chapter for chapter in report.chapters if chapter.finished]
    left_out = [chapter for chapter in report.chapters if not chapter.finished]
    body = element(
        "body",
        element("a", "Skip to the experiments", href="#experiments", class_="skip"),
        _header(report, shown),
        _contents(shown, left_out),
        element("main", (_chapter(chapter) for chapter in shown), _not_run(left_out), id="experiments"),
        provenance(report),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _header(report: Report, shown: list[Chapter]) -> Markup:
    counts = verdicts(shown)
    total = sum(counts.values())
    tiles = [
        element("li", element("span", counts[verdict], class_="count"), badge(verdict), class_="tile")
        for verdict in Verdict
    ]
    lead = f"{counted(total, 'claim')} of the paper and of our own, judged on {counted(report.runs, 'run')} at scale "
    return element(
        "header",
        element("h1", TITLE),
        element("p", "The paper is ", AUTHORS, ", ", element("cite", PAPER), f", {JOURNAL}."),
        element(
            "p",
            lead,
            element("strong", report.scale),
            ". Made ",
            element("time", report.made, class_="whole"),
            f" by drkm {report.version}.",
        ),
        element("ul", tiles, class_="tiles", aria_label="Verdicts"),
        element(
            "p",
            "A verdict is about this scale, and says beside itself how it was reached. Cannot tell means that runs are "
            "missing, or that what was measured does not decide.",
            _of_unfinished(shown),
            class_="note",
        ),
    )


def _of_unfinished(shown: list[Chapter]) -> str | None:
    unfinished = [chapter for chapter in shown if chapter.finished < chapter.expected]
    count = verdicts(unfinished)[Verdict.UNDECIDED]
    if not count:
        return None
    return f" {count} of these are in {counted(len(unfinished), 'experiment')} of which runs are missing."


def _contents(shown: list[Chapter], left_out: list[Chapter]) -> Markup:
    heads = [
        element("th", head, scope="col", class_="num") for head in (*(badge(v, short=True) for v in Verdict), "runs")
    ]
    rows = [_contents_row(chapter) for chapter in shown]
    last = element("p", element("a", "Configuration, versions, hardware, run time", href="#provenance"))
    missing = element("p", element("a", f"Not run: {len(left_out)} more", href="#not-run")) if left_out else None
    table = element(
        "table",
        element("thead", element("tr", element("th", "Experiment", scope="col"), heads)),
        element("tbody", rows),
        class_="contents",
    )
    return element("nav", element("h2", "Contents", id="contents"), table, missing, last, aria_labelledby="contents")


def _contents_row(chapter: Chapter) -> Markup:
    counts = verdicts([chapter])
    link = element("a", prose(chapter.section.title), href=f"#{chapter.section.name}")
    runs = (
        f"{chapter.finished}" if chapter.finished == chapter.expected else f"{chapter.finished} of {chapter.expected}"
    )
    return element(
        "tr",
        element("th", link, scope="row"),
        [element("td", counts[verdict] or "·", class_="num") for verdict in Verdict],
        element("td", runs, class_="num"),
    )


def _chapter(chapter: Chapter) -> Markup:
    section = chapter.section
    label = f"{section.name}-title"
    return element(
        "section",
        element("h2", prose(section.title), id=label),
        _unfinished(chapter),
        paragraphs(section.text),
        claims_block(section.claims, section.name),
        (figure_block(figure) for figure in section.figures),
        (table_block(table) for table in section.tables if table.rows),
        settings_block(section.settings),
        element("p", element("a", "Back to the contents", href="#contents"), class_="back"),
        id=section.name,
        aria_labelledby=label,
    )


def _unfinished(chapter: Chapter) -> Markup | None:
    if chapter.finished == chapter.expected:
        return None
    parts: list[object] = [element("p", f"{chapter.finished} of {chapter.expected} runs are finished.")]
    if chapter.missing:
        parts.append(
            element("p", f"{counted(chapter.missing, 'run')} not made yet: ", element("code", chapter.command))
        )
    if chapter.failed:
        failed = [element("li", run.run, ": ", element("code", run.reason)) for run in chapter.failed[:5]]
        more = len(chapter.failed) - len(failed)
        parts += [
            element("p", f"{counted(len(chapter.failed), 'run')} failed:"),
            element("ul", failed, element("li", f"and {more} more") if more > 0 else None),
        ]
    return element("aside", parts, class_="unfinished", aria_label="Unfinished")


def _not_run(chapters: Iterable[Chapter]) -> Markup | None:
    items = [element("li", f"{chapter.section.title}: ", element("code", chapter.command)) for chapter in chapters]
    if not items:
        return None
    return element(
        "section",
        element("h2", "Not run", id="not-run-title"),
        element("p", "Of these experiments the store has no finished run at this scale:"),
        element("ul", items),
        id="not-run",
        aria_labelledby="not-run-title",
    )
