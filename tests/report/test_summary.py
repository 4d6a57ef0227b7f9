"""The summary of the results: each sentence depends on verdicts, and appears only if they support it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drkm.experiments.registry import EXPERIMENTS
from drkm.experiments.report.chapters import Chapter, Report, verdicts
from drkm.experiments.report.listing import listing
from drkm.experiments.report.page import page
from drkm.experiments.report.summary import SENTENCES
from drkm.experiments.section import Verdict
from drkm.runs.configuration import Results
from report import results_page

CHAPTERS = results_page.read(results_page.PAGE.read_text("utf-8"))


def bullets(text):
    """Return the sentences of the summary of a page."""
    short = text.partition("## In short\n\n")[2].partition("\n\n##")[0]
    return [line.removeprefix("- ") for line in short.splitlines() if line.startswith("- **")]


@pytest.mark.parametrize("sentence", SENTENCES, ids=range(len(SENTENCES)))
def test_the_verdicts_of_the_page_say_what_its_summary_says(sentence):
    assert [one for one in sentence.says if not one.holds(CHAPTERS)] == []


def test_the_summary_of_the_page_has_these_sentences_and_no_other():
    text = results_page.PAGE.read_text("utf-8")
    assert bullets(text) == [sentence.written(CHAPTERS) for sentence in SENTENCES]
    counts = verdicts(CHAPTERS)
    said = f"{counts[Verdict.HELD]} held, {counts[Verdict.FAILED]} did not and {counts[Verdict.UNDECIDED]} cannot"
    assert said in text.replace("\n", " ")


def test_the_report_begins_with_the_summary_of_the_page():
    html = page(Report("medium", CHAPTERS, 1))
    summary = html.partition('id="in-short"')[2].partition("</section>")[0]
    assert summary.count("<li>") == summary.count("<strong>") == len(SENTENCES)
    assert "**" not in summary
    assert html.index('id="in-short"') < html.index("<main")
    assert 'id="in-short"' not in page(Report("medium", CHAPTERS, 1, variant="eta=2"))


def changed(chapters, condition):
    """Return the chapters with another verdict on the claims of a condition."""
    (other, *_) = [verdict for verdict in Verdict if verdict not in condition.verdicts]

    def turned(chapter: Chapter) -> Chapter:
        if chapter.section.name != condition.experiment:
            return chapter
        claims = [
            replace(claim, verdict=other) if claim in condition.claims([chapter]) else claim
            for claim in chapter.section.claims
        ]
        return replace(chapter, section=replace(chapter.section, claims=claims))

    return [turned(chapter) for chapter in chapters]


@pytest.mark.parametrize(
    ("sentence", "condition"), [(one, says) for one in SENTENCES for says in one.says], ids=lambda _: ""
)
def test_a_sentence_goes_when_one_of_its_verdicts_changes(sentence, condition):
    chapters = changed(CHAPTERS, condition)
    assert not sentence.holds(chapters)
    text = listing(Report("medium", chapters, 1))
    assert sentence.text.split("{")[0] not in text
    assert "sentences are left out, because these runs do not support them" in text


def test_an_experiment_of_which_more_than_a_few_runs_are_missing_says_nothing():
    chapters = [replace(chapter, finished=int(0.98 * chapter.expected)) for chapter in CHAPTERS]
    assert not any(sentence.holds(chapters) for sentence in SENTENCES)


def test_every_condition_is_about_claims_that_the_experiments_make():
    chapters = [Chapter(found.section(Results(), "medium"), 0, 0) for found in EXPERIMENTS.values()]
    for sentence in SENTENCES:
        for condition in sentence.says:
            words = condition.words
            assert condition.claims(chapters), f"{condition.experiment}: no claim with {words!r}"


def test_a_page_is_read_as_it_was_written():
    again = results_page.read(listing(Report("medium", CHAPTERS, 1)))
    assert again == CHAPTERS
