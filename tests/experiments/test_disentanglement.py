"""The disentanglement study at tiny scale, on drawn sprites; on Cars3D where the data is at hand."""

import csv
import os

import numpy as np
import pytest

from drkm import ConstrDRKM
from drkm.experiments import sprites_demo
from drkm.experiments.disentanglement import _rule as rule
from drkm.experiments.disentanglement import _tasks as tasks
from drkm.experiments.disentanglement import cars3d as study
from drkm.experiments.disentanglement._models import default_model, rows_of, train_and_encode
from drkm.experiments.disentanglement._rule import Rule
from drkm.gram import RememberedDistances
from drkm.solvers import Penalty


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(study.SIZES, "quick", (60, 200))
    monkeypatch.setitem(rule.SIZES, "quick", (60, 200))
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


@pytest.mark.parametrize("kind", sorted(set(study.KINDS) - {"beta-vae"}))
def test_every_kind_of_model_gives_ten_finite_codes(kind, problem):
    found = train_and_encode(study.KINDS[kind], problem.train, problem.evaluation, 0).scored
    assert found.shape == (200, 10)
    assert np.isfinite(found).all()


def test_widths_of_one_are_the_library_default(problem):
    rows = rows_of(problem.train)
    named = {"layers": [10, 5], "width": 1.0, "deep_width": 1.0, "deep_eta": 1.0, "axes": "ritz", "center": False}
    ours = default_model(named, rows).fit(rows)
    np.testing.assert_allclose(ours.codes_, ConstrDRKM((10, 5)).fit(rows).codes_, atol=1e-6)


def test_a_rule_names_only_what_is_not_the_default():
    assert Rule().parameters((10, 5)) == {"family": "drkm", "layers": [10, 5]}
    assert Rule(width=0.5, deep_eta=10.0).parameters((10,)) == {"family": "drkm", "layers": [10], "width": 0.5}


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


def test_the_study_writes_runs_and_means_and_computes_none_twice(tiny, tmp_path, monkeypatch):
    # DCI grows trees for every class of every factor, which is most of the time.
    no_dci = {"dci": 0.0, "dci_completeness": 0.0, "dci_accuracy": 0.0}
    monkeypatch.setattr(tasks, "_dci", lambda *given: no_dci)
    asked = {"dataset": "dsprites", "parts": ("ours", "kpca", "random"), "draws": 2, "start_seeds": 2}
    table, text = study.run("quick", tmp_path, **asked)
    with table.open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 2 * 2 + 2 * 2 + 2
    assert all(float(row["irs_above"]) == pytest.approx(float(row["irs"]) - float(row["irs_chance"])) for row in rows)
    written = text.read_text()
    assert "ours against kpca: ahead in IRS above chance on" in written
    assert "over start seeds 0\n" in written
    monkeypatch.setattr(tasks, "train_and_encode", None)
    assert study.run("quick", tmp_path, **asked)[1].read_text() == written


def test_the_selection_reports_all_candidates(tiny, tmp_path):
    options = {"draws": 2, "deep": (Rule(),), "widths": (1.0,), "datasets": ("sprites",)}
    table, text = rule.run("quick", tmp_path, **options)
    with table.open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 3 * 3 * 2
    assert len(text.read_text().splitlines()) == 2 + 9


def test_agreement_ignores_order_and_sign_and_falls_with_mixing():
    codes = np.random.default_rng(0).standard_normal((4000, 4))
    same = tasks.agreement(codes, -np.exp(codes[:, ::-1]))
    rotated = codes @ np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
    assert same > 0.9
    assert tasks.agreement(codes, rotated) < 0.6


def test_unknown_names_are_answered_with_what_is_allowed(tmp_path):
    with pytest.raises(ValueError, match="dataset: unknown name 'mnist'"):
        study.run("quick", tmp_path, dataset="mnist")
    with pytest.raises(ValueError, match="parts: unknown name 'gan'"):
        study.run("quick", tmp_path, dataset="dsprites", parts=("gan",))
    with pytest.raises(ValueError, match="scale: unknown name 'huge'"):
        study.run("huge", tmp_path)


def test_two_centred_layers_encode_blocks_in_which_all_points_are_done(problem):
    rows = rows_of(problem.train)
    model = ConstrDRKM((5, 3), center=True).fit(rows)
    np.testing.assert_allclose(model.transform(rows[:1]), model.codes_[:1], atol=1e-6)
    assert model.transform(rows_of(problem.evaluation)).shape == (200, 8)


def test_the_demo_prints_scores_beside_chance_and_draws(tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(sprites_demo, "N_EVALUATION", 200)
    # DCI grows trees for every class of every factor, which is most of the time.
    monkeypatch.setattr(sprites_demo, "COLUMNS", {"IRS": "irs", "MIG": "mig", "SAP": "sap"})
    paths = sprites_demo.run(tmp_path, n=60)
    assert all(path.stat().st_size > 0 for path in paths)
    printed, shown = capsys.readouterr()
    for name in ("ours, layer 1", "kernel PCA", "random codes", "chance"):
        assert name in printed
    # The progress bar is for terminals.
    assert shown == ""


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("DRKM_DATA"), reason="needs the real data in DRKM_DATA")
def test_the_defaults_are_ahead_of_kernel_pca_on_a_draw_of_cars3d():
    shared = {"dataset": "cars3d", "n": 800, "evaluation": 4000}
    ours, plain = (tasks.disentangle({**shared, **study.KINDS[kind]}, 1) for kind in ("defaults", "kpca-median"))
    assert ours["irs"] - ours["irs_chance"] > plain["irs"] - plain["irs_chance"]
    assert ours["mig"] > plain["mig"]
