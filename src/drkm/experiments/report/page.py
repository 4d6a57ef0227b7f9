"""The report as one HTML page."""

from __future__ import annotations

from collections.abc import Iterable

from drkm.experiments.report.blocks import (
    CLASSES,
    VARIANT,
    badge,
    badge_sign,
    claims_block,
    emphasised,
    figure_block,
    folded,
    paragraphs,
    prose,
    settings_block,
    table_block,
)
from drkm.experiments.report.chapters import Chapter, Report, verdicts
from drkm.experiments.report.provenance import provenance
from drkm.experiments.report.summary import in_short
from drkm.experiments.section import Verdict
from drkm.pages.assets import asset, theme
from drkm.pages.markup import Markup, element, together
from drkm.wording import counted

TITLE = "Deep restricted kernel machines: the paper, run again"
AUTHORS = "F. Tonin, P. Patrinos and J. A. K. Suykens"
PAPER = (
    "Unsupervised learning of disentangled representations in deep restricted kernel machines with orthogonality "
    "constraints"
)
JOURNAL = "Neural Networks 142 (2021)"
READING = (
    "As published is the recipe of the paper; our defaults are those of ConstrDRKM. Numbers after ± are "
    "standard deviations, those in square brackets 95 % intervals of differences of means."
)
#: nothing is fetched or executed: the page is self-contained
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def page(report: Report) -> str:
    """Return the whole page."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{_title(report)} ({report.scale})"),
        element("style", Markup(theme() + asset("drkm.experiments.report", "page.css"))),
    )
    # The summary is about the paper's settings only.
    kept, left_out_of_it = ([], "") if report.variant else in_short(report.chapters)
    shown = [chapter for chapter in report.chapters if chapter.finished]
    left_out = [chapter for chapter in report.chapters if not chapter.finished]
    body = element(
        "body",
        element("a", "Skip to the experiments", href="#experiments", class_="skip"),
        _contents(shown, left_out, summarised=bool(kept)),
        element(
            "div",
            _header(report, shown),
            _in_short(kept, left_out_of_it) if kept else None,
            element("main", (_chapter(chapter) for chapter in shown), _not_run(left_out), id="experiments"),
            provenance(report),
            class_="pages",
        ),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _header(report: Report, shown: list[Chapter]) -> Markup:
    counts = verdicts(shown)
    tiles = [
        element("li", element("span", counts[verdict], class_="count"), " ", badge(verdict), class_="tile")
        for verdict in Verdict
    ]
    lead = f"{counted(counts.total(), 'claim')} of the paper and of our own, judged on {counted(report.runs, 'run')} "
    return element(
        "header",
        element("h1", _title(report)),
        element("p", lead, "at scale ", element("strong", report.scale), "."),
        element("p", VARIANT, class_="variant") if report.variant else None,
        element("ul", tiles, class_="tiles", aria_label="Verdicts"),
        folded("Which paper, and what a verdict means", _about(report, shown)),
    )


def _title(report: Report) -> str:
    return f"Variant {report.variant}: {TITLE[0].lower()}{TITLE[1:]}" if report.variant else TITLE


def _about(report: Report, shown: list[Chapter]) -> Markup:
    made = element("time", report.made, class_="whole")
    return together(
        element("p", "The paper is ", AUTHORS, ", ", element("cite", PAPER), f", {JOURNAL}."),
        element(
            "p",
            "A verdict is about this scale, and says beside itself how it was reached. Cannot tell means that runs are "
            "missing, or that what was measured does not decide.",
            _of_unfinished(shown),
        ),
        element("p", "Made ", made, f" by drkm {report.version}."),
    )


def _of_unfinished(shown: list[Chapter]) -> str | None:
    unfinished = [chapter for chapter in shown if chapter.finished < chapter.expected]
    count = verdicts(unfinished)[Verdict.UNDECIDED]
    if not count:
        return None
    return f" {count} of these are in {counted(len(unfinished), 'experiment')} of which runs are missing."


def _in_short(kept: list[str], left_out: str) -> Markup:
    items = [element("li", emphasised(sentence)) for sentence in kept]
    return element(
        "section",
        element("h2", "In short", id="in-short-title"),
        element("p", READING),
        element("ul", items),
        element("p", left_out) if left_out else None,
        id="in-short",
        aria_labelledby="in-short-title",
    )


def _contents(shown: list[Chapter], left_out: list[Chapter], *, summarised: bool) -> Markup:
    """Return the navigation: a fixed column beside the chapters, or a fixed row above them."""
    links = [element("a", "In short", href="#in-short")] if summarised else []
    links += [_contents_link(chapter) for chapter in shown]
    if left_out:
        links.append(element("a", f"Not run: {len(left_out)}", href="#not-run"))
    links.append(element("a", "Runs and machines", href="#provenance"))
    items = [element("li", link) for link in links]
    return element("nav", element("ul", items), aria_label="Contents")


def _contents_link(chapter: Chapter) -> Markup:
    counts = verdicts([chapter])
    short, colon, rest = chapter.section.title.partition(":")
    told = [
        element("span", counts[verdict], badge_sign(verdict), class_=CLASSES[verdict])
        for verdict in Verdict
        if counts[verdict]
    ]
    title = together(prose(short), element("span", colon, prose(rest), class_="rest") if rest else None)
    return element(
        "a", element("span", title), " ", element("span", told, class_="told"), href=f"#{chapter.section.name}"
    )


def _chapter(chapter: Chapter) -> Markup:
    section = chapter.section
    label = f"{section.name}-title"
    front, rest = ([table for table in section.tables if table.in_front is first] for first in (True, False))
    first, others = section.figures[:1], section.figures[1:]
    return element(
        "section",
        element("h2", prose(section.title), id=label),
        _unfinished(chapter),
        (figure_block(figure, section.name) for figure in first),
        map(table_block, front),
        folded(counted(len(others), "more figure"), (figure_block(figure, section.name) for figure in others))
        if others
        else None,
        claims_block(section.claims, section.name),
        element("h3", "Method and tables"),
        folded("What was asked, and how it was measured", paragraphs(section.text), settings_block(section.settings)),
        folded(counted(len(rest), "table"), map(table_block, rest)) if rest else None,
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
        folded(
            f"{counted(len(items), 'experiment')} without a finished run at this scale",
            element("ul", items),
        ),
        id="not-run",
        aria_labelledby="not-run-title",
    )
