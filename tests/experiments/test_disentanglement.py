"""Models and tasks of disentanglement and the study of Cars3D, on few drawn sprites; on Cars3D where it is at hand."""

import os
from dataclasses import replace

import numpy as np
import pytest

from drkm import ConstrDRKM
from drkm.experiments.disentanglement import _tasks as tasks
from drkm.experiments.disentanglement import cars3d
from drkm.experiments.disentanglement._distances import RememberedDistances
from drkm.experiments.disentanglement._models import default_model, rows_of, train_and_encode
from drkm.experiments.registry import EXPERIMENTS, TASKS
from drkm.experiments.reproduce import reproduce
from drkm.experiments.request import Request
from drkm.experiments.study.scales import SIZES
from drkm.runs.configuration import Configuration, Results
from drkm.solvers import Penalty

TINY = {"start_points": 60, "evaluation": 200, "max_steps": 2, "widths": (1.0,)}


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(SIZES, "quick", replace(SIZES["quick"], **TINY))
    # DCI grows trees for every class of every factor, which takes most of the time.
    monkeypatch.setattr(tasks, "_dci", lambda *given: {"dci": 0.0, "dci_completeness": 0.0, "dci_accuracy": 0.0})
    monkeypatch.setattr(tasks, "METRICS", {name: (options, 3) for name, (options, _) in tasks.METRICS.items()})


@pytest.fixture(scope="module")
def problem():
    return tasks.draw("sprites", 0, 60, 200)


def test_no_image_is_trained_on_and_scored():
    drawn = tasks.draw("sprites", 3, 100, 200)
    assert drawn.train.shape == (100, 64, 64)
    assert drawn.factors.shape == (200, 5)
    seen = {image.tobytes() for image in drawn.train}
    assert not any(image.tobytes() in seen for image in drawn.evaluation)


MODELS = {run.parameters["family"] + str(k): run for k, run in enumerate(EXPERIMENTS["cars3d"].configurations("quick"))}


@pytest.mark.parametrize(
    "model", [name for name in MODELS if not name.startswith("beta-vae") and MODELS[name].seed == 0]
)
def test_every_model_of_cars3d_gives_ten_finite_codes(model, problem):
    found = train_and_encode(MODELS[model].parameters, problem.train, problem.evaluation, 0).scored
    assert found.shape == (200, 10)
    assert np.isfinite(found).all()


def test_widths_of_one_are_the_library_default(problem):
    rows = rows_of(problem.train)
    named = {"layers": [10, 5], "width": 1.0, "deep_eta": 1.0, "center": False}
    ours = default_model(named, rows).fit(rows)
    np.testing.assert_allclose(ours.codes_, ConstrDRKM((10, 5), eta=1.0).fit(rows).codes_, atol=1e-6)


def test_start_seeds_change_nothing(problem):
    rows = rows_of(problem.train)
    first, second = (default_model({"layers": [10, 5]}, rows, seed).fit(rows) for seed in (0, 1))
    assert np.array_equal(first.codes_, second.codes_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_remembered_distances_change_nothing(problem):
    rows = rows_of(problem.train)
    short = Penalty(outer=2, inner=10)
    plain, quick = (
        ConstrDRKM.paper((4, 2), 50.0, gram=gram, solver=short, random_state=0).fit(rows)
        for gram in ("auto", RememberedDistances())
    )
    np.testing.assert_allclose(plain.codes_, quick.codes_, atol=1e-9)
    assert plain.kernels_[0].sigma2 == pytest.approx(quick.kernels_[0].sigma2, rel=1e-9)
    assert plain.kernels_[0].sigma2 != 50.0


def test_scores_stand_beside_chance(tiny, problem):
    found = tasks.scores_of(problem.factors[:, :2] + 0.0, problem.factors[:, :2])
    assert set(found) == {"irs", "irs_chance", "mig", "mig_chance", "sap", "sap_chance"}
    assert found["mig"] > 0.9 > found["mig_chance"]


def test_the_study_of_cars3d_is_written_and_computes_none_twice(tiny, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    # Without the recipe of the paper, whose thousand steps take most of the time.
    groups = [group for group in cars3d.EXPERIMENT.groups if group.family != "paper"]
    monkeypatch.setitem(EXPERIMENTS, "cars3d", replace(cars3d.EXPERIMENT, groups=groups))
    asked = {"out": tmp_path, "jobs": 1, "progress": False}
    reproduce(Request(["cars3d"]), **asked)
    written = (tmp_path / "quick" / "cars3d" / "ahead.md").read_text()
    assert "| two layers, defaults | kernel PCA, median | 2 |" in written
    monkeypatch.setattr(tasks, "train_and_encode", None)
    reproduce(Request(["cars3d"]), **asked)
    assert (tmp_path / "quick" / "cars3d" / "ahead.md").read_text() == written


def test_the_runs_of_cars3d_at_the_scale_of_the_paper_are_those_of_the_first_study():
    runs = EXPERIMENTS["cars3d"].configurations("paper")
    shared = {"dataset": "cars3d", "n": 800, "evaluation": 4000, "dci": True}
    ours = {**shared, "family": "drkm", "layers": [10, 5], "width": 0.5, "deep_eta": 10.0}
    assert len(runs) == 11 * 5
    assert Configuration("disentangle", ours, 4) in runs
    assert Configuration("disentangle", {**shared, "family": "beta-vae", "beta": 4.0}, 0) in runs


def test_candidates_are_scored_on_all_axes_and_agree_with_themselves(tiny, tmp_path):
    experiment = EXPERIMENTS["candidates"]
    run = experiment.configurations("quick")[0]
    found = TASKS.perform(run)
    assert set(found) == {"ritz", "varimax", "ica"}
    assert [len(found["ica"][name]) for name in ("irs", "mig_chance", "kurtosis")] == [2, 2, 2]
    assert 0 < found["ritz"]["agreement"] < 1
    (table,) = experiment.section(Results([(run, found, 1.0)]), "quick").tables
    assert [row["axes"] for row in table.rows] == ["ritz", "varimax", "ica"]
    assert table.rows[0]["both ahead"] == "0 of 2"


def test_agreement_ignores_order_and_sign_and_falls_with_mixing():
    codes = np.random.default_rng(0).standard_normal((4000, 4))
    same = tasks.agreement(codes, -np.exp(codes[:, ::-1]))
    rotated = codes @ np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
    assert same > 0.9
    assert tasks.agreement(codes, rotated) < 0.6


def test_two_centred_layers_encode_blocks_in_which_all_points_are_done(problem):
    rows = rows_of(problem.train)
    model = ConstrDRKM((5, 3), center=True).fit(rows)
    np.testing.assert_allclose(model.transform(rows[:1]), model.codes_[:1], atol=1e-6)
    assert model.transform(rows_of(problem.evaluation)).shape == (200, 8)


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("DRKM_DATA"), reason="needs the real data in DRKM_DATA")
def test_the_defaults_are_ahead_of_kernel_pca_on_a_draw_of_cars3d():
    shared = {"dataset": "cars3d", "n": 800, "evaluation": 4000}
    ours, plain = (tasks.disentangle({**shared, "family": "drkm", "layers": layers}, 1) for layers in ([10, 5], [10]))
    assert ours["irs"] - ours["irs_chance"] > plain["irs"] - plain["irs_chance"]
    assert ours["mig"] > plain["mig"]
