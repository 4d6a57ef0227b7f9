from __future__ import annotations

import base64
import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest

from drkm.experiments import registry
from drkm.experiments.cells import readable
from drkm.experiments.experiment import SimpleExperiment
from drkm.experiments.report import write_report
from drkm.experiments.report.blocks import first_sentence, prose
from drkm.experiments.report.chapters import Chapter, Report, verdicts
from drkm.experiments.report.listing import listing
from drkm.experiments.report.page import page
from drkm.experiments.report.writing import gather
from drkm.experiments.request import Request
from drkm.experiments.section import Figure, ResultTable, Verdict
from drkm.pages.markup import Markup, element
from drkm.runs import store as stores
from drkm.runs.configuration import Configuration
from drkm.runs.runner import sweep
from drkm.wording import duration
from report import pages
from runs.probes import PROBE, TASKS

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(scope="module")
def reader():
    return pages.Reader(page(pages.report()))


def test_text_is_escaped_and_markup_is_not():
    inner = element("b", "<i>", Markup("<i></i>"), [1, None, ["&"]])
    assert inner == "<b>&lt;i&gt;<i></i>1&amp;</b>"
    assert element("p", inner, title='"') == f'<p title="&quot;">{inner}</p>'


def test_attributes_may_be_absent_empty_or_named_like_keywords():
    assert element("div", class_="a", aria_label="b", hidden=True, id=None) == (
        '<div class="a" aria-label="b" hidden></div>'
    )


def test_hostile_text_arrives_as_text_wherever_it_is_put():
    found = pages.Reader(page(pages.report(pages.HOSTILE)))
    assert not found.named("script")
    assert not found.named("b")
    text = " ".join(found.text)
    # Title, text, claims, table, caption, settings, failed run and environment of both finished chapters.
    assert text.count(pages.HOSTILE) > 60


def test_the_page_is_well_formed_and_its_links_lead_somewhere(reader):
    ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    assert {f"#{name}" for name in ("study", "partly", "not-run", "provenance")} <= {
        link["href"] for link in reader.named("a")
    }
    targets = [attributes["href"] for attributes in reader.named("a") if "download" not in attributes]
    assert targets
    assert {target.removeprefix("#") for target in targets} <= set(ids)
    labels = [a["aria-labelledby"] for _, a in reader.elements if "aria-labelledby" in a]
    assert set(labels) <= set(ids)


def test_the_page_says_which_paper_it_judges(reader):
    text = " ".join(reader.text)
    assert "F. Tonin, P. Patrinos and J. A. K. Suykens" in text
    assert "Neural Networks 142 (2021)" in text
    assert len(reader.named("cite")) == 1


def test_the_page_fetches_and_executes_nothing(reader):
    for tag, attributes in reader.elements:
        assert tag not in ("script", "link", "iframe", "object")
        assert not [name for name in attributes if name.startswith("on")]
    assert all(image["src"].startswith("data:image/svg+xml;base64,") for image in reader.named("img"))
    (policy,) = [meta["content"] for meta in reader.named("meta") if "http-equiv" in meta]
    assert policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    style = re.search(r"<style>(.*?)</style>", page(pages.report()), re.DOTALL)[1]
    assert "url(" not in style
    assert "@import" not in style


def test_the_page_can_be_read_without_eyes(reader):
    levels = [int(tag[1]) for tag, _ in reader.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert all(image["alt"] for image in reader.named("img"))
    assert {"header", "nav", "main", "footer"} <= {tag for tag, _ in reader.elements}
    assert reader.named("html")[0]["lang"] == "en"
    boxes = [a for _, a in reader.elements if "scroll" in (a.get("class") or "").split()]
    assert boxes
    assert all(box["tabindex"] == "0" and box["aria-label"] for box in boxes)


def test_a_chapter_shows_its_figure_first_and_folds_claims_by_verdict_text_and_tables():
    folded, order = 0, []
    first = page(pages.report()).partition('<section id="study"')[2].partition("</section>")[0]
    for found in re.finditer(r"<(/?)(details|h2|figure|table|dl)\b", first):
        closes, tag = found.groups()
        if tag == "details":
            folded += -1 if closes else 1
        elif not closes:
            order.append((tag, folded))
    assert order == [("h2", 0), ("figure", 0), *[("table", 1)] * 3, ("dl", 1), ("table", 1)]
    summaries = re.findall(r"<summary[^>]*>(.*?)</summary>", first)
    counted = [re.sub(r"<[^>]*>", "", one) for one in summaries]
    assert counted[:3] == ["✓ held 1 claim", "✗ did not hold 1 claim", "? cannot tell 1 claim"]


def test_a_table_in_front_is_not_folded():
    front = replace(pages.section().tables[0], in_front=True)
    chapter = Chapter(replace(pages.section(), tables=[front], claims=[], settings={}), 1, 1)
    text = page(Report("quick", [chapter], 1))
    assert text.index(front.caption) < text.index("<details>", text.index("<main"))


def test_figures_can_be_kept_as_svg_and_pdf(reader):
    kept = {link["download"]: link["href"] for link in reader.named("a") if "download" in link}
    assert list(kept) == [f"{name}-line.{kind}" for name in ("study", "partly") for kind in ("svg", "pdf")]
    data = {name: base64.b64decode(address.partition("base64,")[2]) for name, address in kept.items()}
    assert data["study-line.svg"].startswith(b"<?xml")
    assert data["study-line.pdf"].startswith(b"%PDF")


def test_the_same_figure_is_the_same_page():
    assert page(pages.report()) == page(pages.report())


def test_a_verdict_is_told_by_its_word_and_not_by_colour_alone(reader):
    text = "".join(reader.text)
    for verdict, sign in zip(Verdict, "✓✗?", strict=True):
        assert text.count(f"{sign} {verdict.value}") >= 3


def test_claims_of_experiments_that_were_not_run_are_not_counted():
    made = pages.report()
    shown = [chapter for chapter in made.chapters if chapter.finished]
    assert verdicts(shown) == dict.fromkeys(Verdict, 2)
    assert "6 claims of the paper and of our own, judged on 6 runs" in "".join(pages.Reader(page(made)).text)


def test_missing_and_failed_runs_are_said(reader):
    text = "".join(reader.text)
    assert "2 of 4 runs are finished." in text
    assert "1 of these are in 1 experiment of which runs are missing." in text
    assert "1 run not made yet: drkm reproduce partly" in text
    assert "1 run failed:" in text
    assert "ValueError: words" in text
    assert "Study of words: drkm reproduce absent --scale quick" in text


def test_the_end_names_hardware_versions_and_time_but_not_the_machine(reader):
    text = "".join(reader.text)
    assert "1 min 23 s" in text
    assert "CPU words" in text
    assert "secret-name" not in text


def test_indices_are_set_as_such_but_names_are_left_alone():
    assert prose("σ_n, s_1² and half_circle < 3") == "σ<sub>n</sub>, s<sub>1</sub>² and half_circle &lt; 3"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (float("nan"), "–"), (True, "yes"), (1 / 3, "0.3333"), (7, "7"), ((1, 0.5), "1, 0.5"), ("a", "a")],
)
def test_values_read_well(value, text):
    assert readable(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.028, "0.03 s"), (8.24, "8.2 s"), (59.97, "1 min 0 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_times_read_well(seconds, text):
    assert duration(seconds) == text


def test_the_alternative_text_of_a_figure_is_the_first_sentence_of_its_caption():
    assert first_sentence("A line at 0.5 of all. It is blue.") == "A line at 0.5 of all."
    assert first_sentence("No full stop") == "No full stop"


def small_study(runs, draw=pages.drawn, name="study"):
    """Return an experiment with these runs."""
    return SimpleExperiment(
        name=name,
        title="A study",
        tasks={"probe": PROBE},
        text=lambda sizes: "Text.",
        scales=dict.fromkeys(("quick", "medium", "paper")),
        runs=lambda sizes: runs,
        tables=lambda rows, sizes: [ResultTable("t", "Rows.", [{"runs": len(rows)}])],
        figures=lambda rows, sizes: [Figure("f", "Line.", draw)],
        claims=lambda rows, sizes: pages.section(name).claims,
    )


@pytest.fixture
def study(monkeypatch):
    """An experiment of three runs, one of which fails."""
    runs = [Configuration("probe", {"value": k, **({"fail": True} if k == 2 else {})}, k) for k in range(3)]
    monkeypatch.setattr(registry, "EXPERIMENTS", {"study": small_study(runs)})
    monkeypatch.setattr(registry, "TASKS", TASKS)
    return runs


def test_a_store_becomes_a_report(study, tmp_path):
    path = tmp_path / "runs.sqlite"
    with stores.Store(path, TASKS) as store:
        sweep(study[1:], store, progress=False)
    (chapter,) = gather(path, Request()).chapters
    assert (chapter.expected, chapter.finished, len(chapter.failed), chapter.missing) == (3, 1, 1, 1)
    assert chapter.seeds == [0, 1, 2]
    assert chapter.seconds > 0
    target = write_report(path, tmp_path / "new" / "report.html")
    text = "".join(pages.Reader(target.read_text("utf-8")).text)
    assert "1 of 3 runs are finished." in text
    assert "torch" in text


def command(*words: object) -> int:
    from drkm.cli._outcome import run
    from drkm.cli.app import app

    return run(app, [str(word) for word in words])


def test_reproduce_ends_with_the_page_unless_told_otherwise(study, tmp_path, capsys):
    del study[2]
    assert command("reproduce", "study", "--jobs", 1, "--out", tmp_path / "without", "--no-report") == 0
    assert not list((tmp_path / "without").rglob("report.html"))
    assert command("reproduce", "study", "--jobs", 1, "--out", tmp_path / "with") == 0
    page = tmp_path / "with" / "quick" / "report.html"
    assert page.stat().st_size > 0
    assert capsys.readouterr().out.splitlines()[-1] == str(page)


def test_reproduce_ends_with_the_verdicts_of_what_was_asked_for(study, tmp_path, capsys, monkeypatch):
    del study[2]
    monkeypatch.setitem(registry.EXPERIMENTS, "other", small_study(study, name="other"))
    assert command("reproduce", "study", "--jobs", 1, "--out", tmp_path) == 0
    *_, held, failed, unsure, heads, counts, written = capsys.readouterr().out.splitlines()
    assert (held, failed) == ("✓ It is words: ours 1.31, published 1.22", "✗ Never: ours 2 of words")
    assert unsure.startswith("? Perhaps")
    assert heads.split() == ["claims", "✓", "held", "✗", "did", "not", "hold", "?", "cannot", "tell"]
    assert counts.split() == ["study", "1", "1", "1"]
    # The other experiment shares these runs, but is neither shown nor counted.
    assert 'id="other"' not in Path(written).read_text("utf-8")
    assert "3 claims of the paper" in Path(written).read_text("utf-8")
    assert command("reproduce", "other", "--jobs", 1, "--out", tmp_path) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[-2].split() == ["other", "1", "1", "1"]
    # The page keeps what an earlier command has written.
    assert 'id="study"' in Path(written).read_text("utf-8")
    assert 'id="other"' in Path(written).read_text("utf-8")
    assert command("reproduce", "study", "other", "--jobs", 1, "--out", tmp_path, "--no-report") == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["all", "2", "2", "2"]


def test_a_report_of_some_experiments_counts_their_runs_alone(study, tmp_path, monkeypatch):
    store = tmp_path / "runs.sqlite"
    with stores.Store(store, TASKS) as opened:
        sweep(study[:2], opened, progress=False)
    monkeypatch.setitem(registry.EXPERIMENTS, "other", small_study(study[1:2], name="other"))
    found = gather(store, Request(["other"]))
    assert [chapter.section.name for chapter in found.chapters] == ["other"]
    assert [place["runs"] for place in found.environments] == [found.runs] == [1]
    assert command("report", "other", "--store", store, "-o", tmp_path / "other.html") == 0
    assert 'id="study"' not in (tmp_path / "other.html").read_text("utf-8")


@pytest.mark.parametrize("scale", ["quick", "medium"])
def test_the_page_of_a_scale_is_in_its_folder_beside_the_runs(scale, study, tmp_path, capsys):
    stores.Store(tmp_path / "runs.sqlite", TASKS).close()
    assert command("report", "--store", tmp_path / "runs.sqlite", "--scale", scale) == 0
    page = tmp_path / scale / "report.html"
    assert capsys.readouterr().out == f"{page}\n"
    assert f"at scale <strong>{scale}</strong>" in page.read_text("utf-8")


def test_the_report_of_what_is_not_a_store_is_one_sentence_and_exit_code_2(study, tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("no database")
    assert command("report", "--store", tmp_path / "notes.txt", "-o", tmp_path / "report.html") == 2
    assert capsys.readouterr().err.splitlines() == [f"drkm: store: {tmp_path / 'notes.txt'} is not a drkm store"]
    assert not (tmp_path / "report.html").exists()


def test_a_report_that_cannot_be_made_leaves_the_old_one(study, tmp_path, monkeypatch):
    store, target = tmp_path / "runs.sqlite", tmp_path / "report.html"
    with stores.Store(store, TASKS) as opened:
        sweep(study[:1], opened, progress=False)
    target.write_text("old")
    monkeypatch.setitem(registry.EXPERIMENTS, "study", small_study(study, lambda: 1 / 0))
    with pytest.raises(ZeroDivisionError):
        write_report(store, target)
    assert target.read_text() == "old"
    assert {entry.name for entry in tmp_path.iterdir() if "report" in entry.name} == {"report.html"}


def test_a_store_that_is_not_there_is_refused_and_not_made(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"store: there is no file .*none\.sqlite; 'drkm reproduce' makes one"):
        write_report(tmp_path / "none.sqlite", tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


def test_unknown_scales_and_experiments_are_refused(study, tmp_path):
    with stores.Store(tmp_path / "runs.sqlite", TASKS):
        pass
    with pytest.raises(ValueError, match="scale: unknown name 'huge', allowed are quick, medium, paper"):
        write_report(tmp_path / "runs.sqlite", tmp_path / "report.html", Request(scale="huge"))
    with pytest.raises(ValueError, match="experiment: unknown name 'table9'"):
        write_report(tmp_path / "runs.sqlite", tmp_path / "report.html", Request(["table9"]))
    assert not list(tmp_path.glob("*.html"))


def test_the_claims_alone_are_one_table_per_experiment_in_markdown():
    report = pages.report("a | b\nc")
    text = listing(report)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    claims = [claim for chapter in report.chapters for claim in chapter.section.claims]
    heads = sum(1 for chapter in report.chapters if chapter.section.claims)
    assert len(rows) == len(claims) + heads
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 5 for row in rows)
    needed = r"(?:\nWhat it would take to tell:\n\n(?:- .*\n)+)?"
    folded = re.findall(rf"<details>\n<summary>(\d+) claims?: .*</summary>\n\n((?:\|.*\n)+){needed}\n</details>", text)
    assert sum(int(count) for count, _ in folded) == len(claims)
    assert len(folded) == heads
    assert all(f"### {chapter.section.title}".split("\n")[0] in text for chapter in report.chapters)
    counts = verdicts(report.chapters)
    assert f"{counts[Verdict.HELD]} held, {counts[Verdict.FAILED]} did not and" in text
    assert text.count("\n- Perhaps: too few\n") == counts[Verdict.UNDECIDED] > 0


def test_a_report_of_another_kind_is_refused(tmp_path):
    stores.Store(tmp_path / "runs.sqlite", TASKS).close()
    with pytest.raises(ValueError, match=r"out: a report is a file that ends in .html or .md, got report.pdf"):
        write_report(tmp_path / "runs.sqlite", tmp_path / "report.pdf")
    assert write_report(tmp_path / "runs.sqlite", tmp_path / "claims.md").read_text().startswith("# Results")
