"""The disentanglement study at tiny scale, on drawn sprites; on Cars3D where the data is at hand."""

import csv
import functools
import os

import numpy as np
import pytest

from drkm import ConstrDRKM
from drkm.experiments import _disentanglement_rule as rule
from drkm.experiments import disentanglement as study
from drkm.experiments import sprites_demo
from drkm.experiments._disentanglement_rivals import DEFAULTS, KINDS, Rule, codes_of, rows_of, two_layers
from drkm.gram import RememberedDistances
from drkm.solvers import Penalty


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(study.SIZES, "quick", (60, 200))
    monkeypatch.setattr(study, "SHUFFLES", 3)


@pytest.fixture(scope="module")
def problem():
    return study.draw("dsprites", 0, 60, 200)


def test_no_image_is_trained_on_and_scored():
    drawn = study.draw("dsprites", 3, 100, 200)
    assert drawn.train.shape == (100, 64, 64)
    assert drawn.factors.shape == (200, 5)
    seen = {image.tobytes() for image in drawn.train}
    assert not any(image.tobytes() in seen for image in drawn.evaluation)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"beta-vae"}))
def test_every_kind_of_model_gives_ten_finite_codes(kind, problem):
    found = codes_of(kind, problem.train, problem.evaluation)
    assert found.codes.shape == (200, 10)
    assert np.isfinite(found.codes).all()


def test_the_default_rule_is_the_library_default(problem):
    ours = codes_of("ours", problem.train, problem.evaluation, rule=DEFAULTS).codes
    np.testing.assert_allclose(ours, codes_of("defaults", problem.train, problem.evaluation).codes, atol=1e-6)


def test_start_seeds_change_nothing(problem):
    rows = rows_of(problem.train)
    first, second = (two_layers(rows, seed=seed).fit(rows) for seed in (0, 1))
    assert np.array_equal(first.codes_, second.codes_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_remembered_distances_change_nothing(problem):
    rows = rows_of(problem.train)
    short = Penalty(outer=2, inner=10, learn_bandwidth=True)
    plain, quick = (
        ConstrDRKM.paper((4, 2), 50.0, gram=gram, solver=short, random_state=0).fit(rows)
        for gram in ("auto", RememberedDistances())
    )
    np.testing.assert_allclose(plain.codes_, quick.codes_, atol=1e-9)
    assert plain.kernels_[0].sigma2 == pytest.approx(quick.kernels_[0].sigma2, rel=1e-9)
    assert plain.kernels_[0].sigma2 != 50.0


def test_scores_stand_beside_chance(tiny, problem):
    found = study.scores_of(problem.factors[:, :2] + 0.0, problem.factors[:, :2])
    assert set(found) == set(study.SCORES)
    assert found["mig"] > 0.9 > found["mig_chance"]
    assert found["irs_above"] == found["irs"] - found["irs_chance"]


def test_the_study_writes_runs_and_means(tiny, tmp_path, monkeypatch):
    plain = functools.partial(study.scores_of, with_dci=False)
    monkeypatch.setattr(study, "scores_of", lambda *given: dict.fromkeys(study.SCORES, 0.0) | plain(*given))
    parts = ("ours", "kpca", "random")
    paths = study.run("quick", tmp_path, dataset="dsprites", parts=parts, draws=2, start_seeds=2)
    table, text = paths
    with table.open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 2 * 2 + 2 * 2 + 2
    assert all(float(row["irs_above"]) == pytest.approx(float(row["irs"]) - float(row["irs_chance"])) for row in rows)
    written = text.read_text()
    assert "ours against kpca: ahead in IRS above chance on" in written
    assert "over start seeds 0\n" in written


def test_the_selection_reports_all_candidates(tiny, tmp_path):
    options = {"draws": 2, "deep": (Rule(),), "widths": (1.0,), "datasets": ("dsprites",)}
    table, text = rule.run("quick", tmp_path, **options)
    with table.open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 3 * 3 * 2
    assert len(text.read_text().splitlines()) == 2 + 9


def test_agreement_ignores_order_and_sign_and_falls_with_mixing():
    codes = np.random.default_rng(0).standard_normal((4000, 4))
    same = rule.agreement(codes, -np.exp(codes[:, ::-1]))
    rotated = codes @ np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
    assert same > 0.9
    assert rule.agreement(codes, rotated) < 0.6


def test_unknown_names_are_answered_with_what_is_allowed(tmp_path):
    with pytest.raises(ValueError, match="dataset: unknown name 'mnist'"):
        study.draw("mnist", 0)
    with pytest.raises(ValueError, match="parts: unknown name 'gan'"):
        study.run("quick", tmp_path, dataset="dsprites", parts=("gan",))
    with pytest.raises(ValueError, match="scale: unknown name 'huge'"):
        study.run("huge", tmp_path)
    with pytest.raises(ValueError, match="kind: unknown name 'gan'"):
        codes_of("gan", np.zeros((2, 64, 64), np.uint8), np.zeros((2, 64, 64), np.uint8))


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
    printed = capsys.readouterr().out
    for name in ("ours, layer 1", "kernel PCA", "random codes", "chance"):
        assert name in printed


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("DRKM_DATA"), reason="needs the real data in DRKM_DATA")
def test_the_defaults_are_ahead_of_kernel_pca_on_a_draw_of_cars3d():
    drawn = study.draw("cars3d", 1)
    ours, plain = (
        study.scores_of(codes_of(kind, drawn.train, drawn.evaluation).codes, drawn.factors, with_dci=False)
        for kind in ("defaults", "kpca-median")
    )
    assert ours["irs_above"] > plain["irs_above"]
    assert ours["mig"] > plain["mig"]
