"""Variants by the user: other values of parameters, with separate runs, folders and pages."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from command_line import drkm
from drkm.experiments import registry
from drkm.experiments.disentanglement import _models as models
from drkm.experiments.disentanglement import _tasks as tasks
from drkm.experiments.registry import EXPERIMENTS
from drkm.experiments.report.listing import listing
from drkm.experiments.report.writing import gather
from drkm.experiments.reproduce import reproduce
from drkm.experiments.request import Request
from drkm.experiments.settings import Variant
from drkm.experiments.study.study import Study
from drkm.runs.configuration import Results
from drkm.runs.store import Store
from experiments.test_studies import made_up

#: a value of each parameter that differs from those of all scales
VALUES = {
    "beta": "7",
    "components": "6,12",
    "eta": "1,30",
    "gamma": "2",
    "layers": "12,4",
    "max_steps": "33",
    "n_test": "70",
    "n_train": "170",
    "n_validation": "60",
    "protocol": "0.3",
    "sigma2": "20",
    "width": "3",
    "widths": "3,7",
}
CASES = [(name, key) for name, found in EXPERIMENTS.items() for key in found.adjustable]
every = pytest.mark.parametrize(("name", "key"), CASES)
every_study = pytest.mark.parametrize(
    ("name", "key"), [(name, key) for name, key in CASES if isinstance(EXPERIMENTS[name], Study)]
)


def variant(*settings):
    return Variant.read(settings)


def value_of(name, key):
    """Return a value of a parameter; the models of one of the experiments have three layers."""
    return {"eta": "1,30,60", "layers": "6,4,4"}.get(key, VALUES[key]) if name == "components" else VALUES[key]


def asked(name, key):
    return Request([name], variant=variant(f"{key}={value_of(name, key)}")).experiments[name]


def runs_of(name, scale, *settings):
    return Request([name], scale, variant=variant(*settings) if settings else None).runs[name]


def test_every_experiment_has_parameters_of_its_models_to_set():
    assert {key for _, key in CASES} == set(VALUES)
    assert {name for name, _ in CASES} == set(EXPERIMENTS)


@every
def test_a_variant_has_runs_of_its_own(name, key):
    theirs, ours = set(runs_of(name, "medium")), set(asked(name, key).configurations("medium"))
    assert ours - theirs
    assert len(ours) <= len(theirs)


def test_runs_that_do_not_have_the_parameter_are_shared():
    theirs, ours = set(runs_of("layers", "quick")), set(runs_of("layers", "quick", "gamma=2"))
    assert {run.parameters.get("gamma") for run in ours} == {None, 2.0}
    assert {run for run in theirs if run.parameters["family"] == "drkm"} == ours & theirs


def test_what_a_group_of_runs_is_about_stays():
    runs = runs_of("cars3d", "quick", "width=3", "eta=1,30")
    assert {run.parameters.get("width") for run in runs if run.parameters["family"] == "drkm"} == {0.5, 3.0}
    weights = {
        (run.parameters.get("eta") and tuple(run.parameters["eta"]), run.parameters.get("deep_eta")) for run in runs
    }
    assert weights == {(None, None), ((1.0, 30.0), None), (None, 10.0)}


def test_the_recipe_as_published_is_run_at_the_width_that_is_set():
    problem = tasks.draw("sprites", 0, 12, 6)
    recipe = {"family": "paper", "layers": [2, 1], "learn_bandwidth": False}
    for more, width in (({}, 50.0), ({"sigma2": 20.0}, 20.0)):
        found = models.train_and_encode({**recipe, **more}, problem.train, problem.evaluation, 0)
        assert found.details["bandwidths"] == [width, width]


def test_layers_are_set_in_runs_with_as_many():
    stacks = {tuple(run.parameters["layers"]) for run in runs_of("layers", "quick", "layers=12,4")}
    assert stacks == {(10,), (12, 4), (2, 2, 6)}


def test_the_same_value_is_the_same_run_however_it_is_written():
    assert runs_of("layers", "quick", "gamma=2") == runs_of("layers", "quick", "gamma=2.0")
    assert runs_of("deep_layer", "quick", "gamma=1") == runs_of("deep_layer", "quick")


@every_study
def test_tables_figures_and_claims_of_a_variant_say_that_it_is_one(name, key):
    experiment = asked(name, key)
    rng = np.random.default_rng(0)
    runs = experiment.configurations("medium")
    shown = experiment.section(Results((run, made_up(run, rng), 1.0) for run in runs), "medium")
    told = f"variant {key}={value_of(name, key)}"
    assert shown.title.endswith(f"({told})")
    assert shown.text.startswith(f"This is the {told}.")
    assert shown.settings["set"] == f"{key}={value_of(name, key)}"
    assert all(claim.why.startswith(f"Judged of the {told}, not of the paper's settings. ") for claim in shown.claims)
    assert any(table.rows for table in shown.tables)


@pytest.mark.slow
@every_study
def test_figures_of_a_variant_are_drawn(name, key):
    from drkm.plotting import pyplot

    experiment = asked(name, key)
    rng = np.random.default_rng(0)
    results = Results((run, made_up(run, rng), 1.0) for run in experiment.configurations("quick"))
    for figure in experiment.section(results, "quick").figures:
        drawn = figure.draw()
        drawn.canvas.draw()
        assert drawn.axes
        pyplot().close(drawn)


@pytest.mark.parametrize(
    ("names", "setting", "sentence"),
    [
        (["layers"], "gama=2", "set: unknown name 'gama', allowed are eta, gamma, layers, sigma2, width"),
        (["table1"], "gamma=2", "set: unknown name 'gamma', allowed are components, n_train"),
        (["layers"], "gamma", "set: expected a name and a value as in gamma=2, got 'gamma'"),
        (["layers"], "gamma=two", "set: gamma takes a positive number, got 'two'"),
        (["layers"], "gamma=-1", "set: gamma takes a positive number, got '-1'"),
        (["layers"], "gamma=nan", "set: gamma takes a positive number, got 'nan'"),
        (["layers"], "layers=10,0", "set: layers takes positive integers with commas between them, got '10,0'"),
        (
            ["layers"],
            "layers=4,3,2,1",
            "set: layers has an entry per layer, and no run has as many layers as '4,3,2,1'",
        ),
        (["layers"], "eta=none", "set: eta takes auto, or one positive number per layer, got 'none'"),
    ],
)
def test_what_cannot_be_set_is_one_sentence_that_says_what_can(names, setting, sentence, tmp_path):
    done = drkm("reproduce", *names, "--set", setting, "--out", tmp_path / "out")
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    assert not list(tmp_path.iterdir())


def test_a_parameter_is_set_once():
    with pytest.raises(ValueError, match="set: 'gamma' is set twice, to 2 and to 3"):
        variant("gamma=2", "gamma=3")


def test_experiments_without_the_parameter_are_left_out():
    found = Request(["all"], variant=variant("gamma=2"))
    assert "layers" in found.experiments
    assert "table1" not in found.experiments
    assert found.folder == "quick+gamma=2"
    several = Request(["all"], "medium", variant=variant("layers=12,4", "beta=7.5", "protocol=0.3"))
    assert several.folder == "medium+beta=7.5+layers=12,4+protocol=0.3"


def test_a_variant_is_kept_apart_from_the_paper_in_the_same_store(tmp_path, small_curves):
    how = {"out": tmp_path, "jobs": 1, "progress": False}
    asked = Request(["figure2"]), Request(["figure2"], variant=variant("components=6"))
    paper, own = (reproduce(request, **how) for request in asked)
    assert {path.parts[-3] for path in paper} == {"quick"}
    assert {path.parts[-3] for path in own} == {"quick+components=6"}
    with open(tmp_path / "quick+components=6" / "figure2" / "claims.csv", newline="") as file:
        assert all(row["why"].startswith("Judged of the variant components=6") for row in csv.DictReader(file))
    with Store(tmp_path / "runs.sqlite", readonly=True) as store:
        assert store.counts()[0].done == 2


def test_the_report_of_a_variant_says_so_in_its_title_and_not_what_of_the_paper_held(tmp_path, small_curves):
    done = drkm("reproduce", "figure2", "--set", "components=6", "--jobs", 1, "--out", tmp_path)
    assert done.code == 0, done.err
    assert "variant components=6: not judged as the paper's settings" in done.out.splitlines()
    page = (tmp_path / "quick+components=6" / "report.html").read_text(encoding="utf-8")
    assert "<h1>Variant components=6: deep restricted kernel machines" in page
    assert "<title>Variant components=6" in page
    assert "verdicts are about the variant alone" in page
    report = gather(tmp_path / "runs.sqlite", Request(["figure2"], variant=variant("components=6")))
    text = listing(report)
    assert text.startswith("# Results: variant components=6\n")
    assert "drkm reproduce all --scale quick --set components=6" in text
    assert "## In short" not in text
    again = drkm("report", "figure2", "--set", "components=6", "--store", tmp_path / "runs.sqlite")
    assert again.out.strip() == str(tmp_path / "quick+components=6" / "report.html")
    told = drkm("status", "figure2", "--set", "components=6", "--store", tmp_path / "runs.sqlite")
    assert "no run is missing" in told.out


@pytest.fixture
def small_curves(monkeypatch):
    small = {"n_train": 60, "n_validation": 30, "widths": (12.0,), "components": (5, 10), "protocol": (0.5,)}
    scales = registry.EXPERIMENTS["figure2"].scales
    monkeypatch.setitem(scales, "quick", replace(scales["quick"], **small))
