import csv
from dataclasses import replace

import pytest

from drkm.datasets import DatasetError
from drkm.experiments import registry
from drkm.experiments.data import dataset_checksum
from drkm.experiments.denoising._problems import SIZES
from drkm.experiments.experiment import Experiment
from drkm.experiments.report import write_report
from drkm.experiments.reproduce import names_of, reproduce
from drkm.experiments.request import Request
from drkm.experiments.section import Figure, ResultTable
from drkm.experiments.settings import Seeds
from drkm.runs.configuration import SCALES, Configuration
from drkm.runs.merging import merge
from drkm.runs.packing import pack
from drkm.runs.store import Store
from drkm.runs.tasks import Task, TaskTable
from runs import probes


def _draw():
    from drkm.plotting import style

    with style() as plt:
        figure, axes = plt.subplots()
        axes.plot([0, 1])
    return figure


def _tables(rows, sizes):
    digests = [{"seed": row["seed"], "digest": row["digest"]} for row in rows]
    return [ResultTable("digests", "Digests", digests), ResultTable("nothing", "No rows", [])]


class _Digests(Experiment):
    """An experiment with these runs, whose digests it shows."""

    def __init__(self, name, runs):
        shown = {"tables": _tables, "figures": lambda rows, sizes: [Figure("line", "A line", _draw)]}
        super().__init__(name=name, title=name, tasks={"probe": PROBE}, text=lambda sizes: "Text.", **shown)
        object.__setattr__(self, "runs", runs)

    @property
    def families(self):
        return frozenset(run.parameters["family"] for run in self.runs if "family" in run.parameters)

    def sizes(self, scale, seeds=None):
        return None

    def configurations(self, scale, seeds=None):
        return self.runs


def _checksum(parameters):
    return dataset_checksum(parameters) if "dataset" in parameters else ""


PROBE = Task(probes.PROBE.function, data=_checksum, absent=DatasetError)
TABLE = TaskTable(f"{__name__}:TABLE", {"probe": PROBE})


@pytest.fixture
def experiments(monkeypatch):
    """Two experiments that share a run, in place of those of the project."""
    ours = [Configuration("probe", {"family": "ours"}, seed) for seed in range(2)]
    vae = [Configuration("probe", {"family": "vae"}, 0)]
    found = {name: _Digests(name, runs) for name, runs in (("one", ours), ("two", [*ours[:1], *vae]))}
    monkeypatch.setattr(registry, "EXPERIMENTS", found)
    monkeypatch.setattr(registry, "TASKS", TABLE)
    return found


def make(names, out, scale="quick", seeds=None, **options):
    return reproduce(Request(names, scale, seeds), out=out, jobs=1, progress=False, **options)


def test_tables_and_figures_of_all_experiments_are_written(experiments, tmp_path):
    paths = make(["all"], tmp_path)
    written = {str(path.relative_to(tmp_path)) for path in paths}
    files = ("digests.csv", "digests.md", "digests.tex", "line.png", "line.svg", "line.pdf")
    assert written == {f"quick/{name}/{file}" for name in ("one", "two") for file in files}
    assert all(path.stat().st_size for path in paths)
    with open(tmp_path / "quick" / "one" / "digests.csv") as file:
        assert [row["seed"] for row in csv.DictReader(file)] == ["0", "1"]
    with Store(tmp_path / "runs.sqlite") as store:
        assert store.counts()[0].done == 3


def test_an_experiment_is_written_once_all_its_runs_are_there(experiments, tmp_path):
    assert {path.parent.name for path in make(["all"], tmp_path, skip=["vae"])} == {"one"}
    assert {path.parent.name for path in make(["all"], tmp_path, only=["vae"])} == {"one", "two"}
    with Store(tmp_path / "runs.sqlite") as store:
        assert store.counts()[0].done == 3


def test_scales_share_a_store_and_overwrite_nothing_of_each_other(experiments, tmp_path):
    quick, medium = make(["one"], tmp_path), make(["one"], tmp_path, scale="medium")
    assert not set(quick) & set(medium)
    assert all(path.is_file() for path in (*quick, *medium))
    assert {path.name for path in tmp_path.iterdir()} == {"quick", "medium", "runs.sqlite"}


def test_runs_can_be_chosen_by_their_task(experiments, tmp_path):
    assert make(["all"], tmp_path, skip=["probe"]) == []
    with Store(tmp_path / "runs.sqlite") as store:
        assert store.counts() == []


@pytest.mark.parametrize(
    ("names", "options", "sentence"),
    [
        (["table9"], {}, "unknown name 'table9', allowed are one, two and all"),
        (["one", "table9"], {}, "unknown name 'table9', allowed are one, two and all"),
        ([], {}, "expected 'all' or names of experiments"),
        (["one"], {"scale": "huge"}, "scale: unknown name 'huge', allowed are quick, medium, paper"),
        (["one"], {"only": ["ours", "vea"]}, "only: unknown name 'vea', allowed are probe, ours, vae"),
        (["one"], {"skip": ["vea"]}, "skip: unknown name 'vea', allowed are probe, ours, vae"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(names, options, sentence, experiments, tmp_path):
    with pytest.raises(ValueError, match=sentence):
        make(names, tmp_path / "out", **options)
    assert list(tmp_path.iterdir()) == []


def test_absent_data_are_one_sentence_and_nothing_is_written(experiments, tmp_path, monkeypatch):
    monkeypatch.setenv("DRKM_DATA", str(tmp_path / "nowhere"))
    runs = [Configuration("probe", {"dataset": "smallnorb"})]
    monkeypatch.setitem(experiments, "one", _Digests("one", runs))
    with pytest.raises(DatasetError, match="drkm datasets download smallnorb"):
        make(["one"], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_results_from_a_machine_with_the_data_are_enough_to_write_tables(experiments, tmp_path, monkeypatch):
    monkeypatch.setenv("DRKM_DATA", str(tmp_path))
    runs = [Configuration("probe", {"dataset": "cars3d"}, seed) for seed in range(2)]
    monkeypatch.setitem(experiments, "one", _Digests("one", runs))
    (tmp_path / "cars3d_64.npz").write_bytes(b"cars")
    make(["one"], tmp_path / "there")
    (tmp_path / "cars3d_64.npz").unlink()
    there = tmp_path / "there" / "runs.sqlite"
    paths = make(["one"], tmp_path / "here", store=there)
    assert tmp_path / "here" / "quick" / "one" / "digests.csv" in paths
    more = [*runs, Configuration("probe", {"dataset": "cars3d"}, 9)]
    monkeypatch.setitem(experiments, "one", _Digests("one", more))
    with pytest.raises(DatasetError, match="drkm datasets download cars3d"):
        make(["one"], tmp_path / "here", store=there)


def test_all_stands_for_every_experiment_once():
    assert list(Request(["all", "table1"]).experiments) == list(registry.EXPERIMENTS)


def test_runs_are_chosen_by_the_names_that_those_of_all_experiments_have():
    groups = [group for scale in SCALES for group in Request(["all"], scale).runs.values()]
    assert set(registry.choices()) == {name for group in groups for run in group for name in names_of(run)}


def test_a_figure_of_the_paper_is_made_with_claims_on_what_was_measured(tmp_path, monkeypatch):
    small = {"n_train": 60, "n_validation": 30, "widths": (12.0,), "components": (5, 10), "protocol": (0.5,)}
    monkeypatch.setitem(SIZES, "quick", replace(SIZES["quick"], **small))
    paths = make(["figure2"], tmp_path)
    assert {path.suffix for path in paths} == {".png", ".svg", ".pdf", ".csv", ".md", ".tex"}
    with open(tmp_path / "quick" / "figure2" / "claims.csv", newline="") as file:
        claims = list(csv.DictReader(file))
    assert len(claims) == 2
    assert all(" against " in claim["ours"] for claim in claims)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_every_experiment_runs_at_quick(tmp_path):
    paths = reproduce(Request(["all"]), out=tmp_path, progress=False)
    assert {path.parent.name for path in paths} == set(registry.EXPERIMENTS)
    with Store(tmp_path / "runs.sqlite", readonly=True) as store:
        assert not store.failures()
        assert sum(counts.done for counts in store.counts()) > 100
    written = tmp_path / "quick" / "table1"
    with open(written / "claims.csv", newline="") as file:
        claims = list(csv.DictReader(file))
    assert [claim["verdict"] for claim in claims[:12]] == ["held"] * 12
    with open(written / "errors.csv", newline="") as file:
        errors = list(csv.DictReader(file))
    # Both selected models denoise in all cells but the hardest, whose noise is overestimated from 300 points.
    for model in ("one layer, selected", "two layers, selected"):
        assert sum(float(row[model]) < float(row["noisy points"]) for row in errors) >= 11


def test_seeds_of_a_model_that_no_experiment_has_are_refused():
    with pytest.raises(ValueError, match="seeds: unknown model 'gan', allowed are beta-vae, drkm, paper"):
        Request(["layers"], "quick", Seeds(2, {"gan": 3}))


def test_more_seeds_are_computed_and_shown_when_they_are_asked_for(experiments, tmp_path, monkeypatch):
    class Seeded(_Digests):
        def configurations(self, scale, seeds=None):
            return self.runs[: seeds.number if seeds else 2]

    runs = [Configuration("probe", {}, seed) for seed in range(5)]
    monkeypatch.setitem(experiments, "one", Seeded("one", runs))
    table = tmp_path / "quick" / "one" / "digests.csv"
    for seeds, expected in ((None, 2), (Seeds(4), 4), (None, 2)):
        make(["one"], tmp_path, seeds=seeds)
        assert len(table.read_text().splitlines()) == 1 + expected
    with Store(tmp_path / "runs.sqlite", registry.TASKS, readonly=True) as opened:
        assert len(opened.results(runs)) == 4


def test_packed_runs_are_shown_and_not_computed_again(experiments, tmp_path, monkeypatch):
    written = make(["one"], tmp_path / "there")
    with Store(tmp_path / "there" / "runs.sqlite", registry.TASKS, readonly=True) as opened:
        pack(opened.finished()[0], tmp_path / "results.xz", {})
    with Store(tmp_path / "here" / "runs.sqlite", registry.TASKS) as opened:
        merge(opened, tmp_path / "results.xz")
    monkeypatch.setattr(TaskTable, "perform", None)
    again = make(["one"], tmp_path / "here")
    assert [path.name for path in again] == [path.name for path in written]
    tables = [[path.read_bytes() for path in paths if path.suffix == ".csv"] for paths in (written, again)]
    assert tables[0] == tables[1] != []
    page = write_report(tmp_path / "results.xz", tmp_path / "page.html", Request(["one"]))
    assert f"judged on {len(experiments['one'].runs)} runs" in page.read_text("utf-8")
