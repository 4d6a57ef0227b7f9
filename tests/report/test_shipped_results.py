"""The runs that ship with the repository: all runs of `medium`, and docs/results.md, which is made from them."""

from __future__ import annotations

from drkm.experiments.report.listing import listing
from drkm.experiments.report.writing import gather
from drkm.experiments.request import Request
from drkm.experiments.section import Verdict
from report import results_page


def test_the_shipped_runs_are_all_of_medium_and_make_the_page():
    shipped = gather(results_page.PAGE.with_name("results.xz"), Request(scale="medium"))
    for chapter in shipped.chapters:
        assert chapter.finished == chapter.expected > 0, chapter.section.name
    assert listing(shipped).strip() == results_page.PAGE.read_text("utf-8").strip()
    claims = [claim for chapter in shipped.chapters for claim in chapter.section.claims]
    undecided = [claim for claim in claims if claim.verdict is Verdict.UNDECIDED]
    assert len(undecided) <= 25
    assert all(claim.why for claim in undecided)
