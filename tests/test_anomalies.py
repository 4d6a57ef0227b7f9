from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from command_line import drkm, refused
from drkm import AnomalyDetector, ConstrDRKM
from drkm.anomalies import choice, false_alarm_distance
from drkm.inference.eigencomponents import EigenComponents
from drkm.kernels import RBF
from drkm.loading import load_prepared
from drkm.machine import memory
from drkm.machine.memory import NotEnoughMemory
from drkm.strange_data import StrangeDataWarning

IRIS = load_iris()
X = (IRIS.data - IRIS.data.mean(axis=0)) / IRIS.data.std(axis=0)


@parametrize_with_checks([AnomalyDetector()])
def test_scikit_learn_estimator_check(estimator, check):
    check(estimator)


def test_scores_are_minus_distances_and_score_is_minus_the_mean_of_their_squares():
    model = ConstrDRKM(5).fit(X[:100])
    scores = model.score_samples(X[100:])
    np.testing.assert_allclose(scores, -np.linalg.norm(X[100:] - model.denoise(X[100:]), axis=1))
    assert model.score(X[100:]) == pytest.approx(-np.mean(scores**2))


def test_scores_are_in_the_units_of_the_data():
    detector = AnomalyDetector()
    scores, offset = detector.fit(X).score_samples(X[:20]), detector.offset_
    other = detector.fit(10 * X).score_samples(10 * X[:20])
    np.testing.assert_allclose(other, 10 * scores, rtol=1e-4)
    assert detector.offset_ == pytest.approx(10 * offset, rel=1e-4)


def test_a_class_that_training_has_not_seen_scores_lower():
    rows = np.random.RandomState(0).permutation(100) + 50
    train, held = X[rows[:60]], X[rows[60:]]
    detector = AnomalyDetector().fit(train)
    scores = detector.score_samples(np.vstack([held, X[:50]]))
    assert roc_auc_score(np.arange(90) < 40, scores) > 0.99
    assert (detector.predict(X[:50]) == -1).mean() > 0.95


def test_samples_whose_square_does_not_fit_are_refused_with_a_number_that_does(tmp_path, monkeypatch):
    rows = np.random.RandomState(0).randn(3000, 2)
    monkeypatch.setattr(memory, "available", lambda device: 40_000_000)
    sentence = "X: finding the strange ones of 3000 samples needs 72 MB of memory, available on cpu are 40 MB; fit a "
    with pytest.raises(NotEnoughMemory, match=sentence + "random part of the samples, such as 790 of them"):
        AnomalyDetector().fit(rows)
    np.save(tmp_path / "rows.npy", rows)
    told = refused("fit", tmp_path / "rows.npy", "-o", tmp_path / "model", "--anomalies")
    assert "such as 790 of them" in told
    assert len(AnomalyDetector().fit(rows[:790]).score_samples(rows[790:])) == 2210


def test_components_for_which_there_is_no_memory_are_refused(monkeypatch):
    rows = torch.randn(1000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    EigenComponents(RBF(1.0), rows, rank=3)
    monkeypatch.setattr(memory, "available", lambda device: 40_000_000)
    EigenComponents(RBF(1.0), rows, rank=3)
    with pytest.raises(NotEnoughMemory, match="X: a set of components of 1000 samples needs 48"):
        EigenComponents(RBF(1.0), rows)
    with pytest.raises(NotEnoughMemory, match="X: a set of components of 5000 samples needs 2"):
        EigenComponents(RBF(1.0), rows.repeat(5, 1), rank=3)


def test_planted_rows_stand_out_among_the_samples_of_the_fit():
    areas = []
    for seed in range(3):
        random = np.random.RandomState(seed)
        rows = np.vstack([X, np.stack([random.permutation(column)[:15] for column in X.T], axis=1)])
        areas.append(roc_auc_score(np.arange(165) < 150, AnomalyDetector().fit(rows).score_samples(rows)))
    assert np.mean(areas) > 0.85


def test_columns_in_other_units_are_reported_and_strange_samples_are_not():
    with pytest.warns(StrangeDataWarning) as told:
        AnomalyDetector().fit(load_wine(as_frame=True).data)
    assert [str(one.message).split(",")[0] for one in told] == [
        "X: column 'proline' (of 13) has 99.8% of the squared distances between samples"
    ]
    assert told[0].filename == __file__
    AnomalyDetector().fit(np.vstack([X, [9, 9, 9, 99]]))


def test_an_isolated_sample_does_not_explain_itself():
    rows = np.vstack([X, [[9.0, -9.0, 9.0, -9.0]]])
    scores = AnomalyDetector().fit(rows).score_samples(rows)
    assert scores.argmin() == 150
    assert scores[150] < 3 * np.sort(scores)[1]


def test_samples_without_neighbours_are_refused_by_what_is_wrong_with_them():
    with pytest.raises(ValueError, match=r"^X: no two of \d samples are near each other"):
        AnomalyDetector().fit(X[[0, 60, 110, 149]])


def test_a_fit_that_fails_leaves_the_detector_as_it_was():
    detector = AnomalyDetector().fit(X)
    scores = detector.score_samples(X)
    with pytest.raises(ValueError, match=r"^X: contains NaN"):
        detector.fit(np.full((9, 7), np.nan))
    assert detector.score_samples(X).tobytes() == scores.tobytes()


@pytest.mark.parametrize("share", [0.02, 0.2])
def test_false_alarms_on_new_samples_are_about_as_many_as_were_allowed(share):
    random = np.random.RandomState(0)
    mix = random.normal(size=(3, 6))
    train, new = (random.normal(size=(count, 3)) @ mix + 0.1 * random.normal(size=(count, 6)) for count in (200, 2000))
    alarms = (AnomalyDetector(false_alarms=share).fit(train).predict(new) < 0).mean()
    # Four standard errors of the quantile of 200 scores.
    assert abs(alarms - share) < 4 * np.sqrt(share * (1 - share) / 200)


@pytest.mark.parametrize("share", [0, 1, -0.1, "few"])
def test_shares_of_false_alarms_that_mean_nothing_are_refused(share):
    with pytest.raises((TypeError, ValueError), match="false_alarms: "):
        AnomalyDetector(false_alarms=share).fit(X)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("anomalies") / "plants.csv"
    frame = pd.DataFrame(IRIS.data, columns=["sl", "sw", "pl", "pw"])
    frame.insert(0, "plant", [f"p{i}" for i in range(150)])
    frame.iloc[7, 2] = np.nan
    frame.iloc[9, 3] = 60.0
    frame.to_csv(path, index=False)
    return path


@pytest.mark.filterwarnings("ignore::drkm.strange_data.StrangeDataWarning")  # of the row that is to be found
def test_encode_writes_the_anomaly_of_every_row_and_tells_the_threshold(table, tmp_path):
    model, codes = tmp_path / "m.safetensors", tmp_path / "codes.csv"
    options = ("--id", "plant", "--impute", "fill", "--scale", "standard", "--anomalies")
    assert drkm("fit", table, "-o", model, *options).code == 0
    done = drkm("encode", model, table, "-o", codes, "--anomaly", "--json")
    assert done.code == 0, done.err
    found, facts = pd.read_csv(codes), json.loads(done.out)
    loaded, preparation = load_prepared(model)
    rows = preparation.apply(pd.read_csv(table).iloc[:, 1:])
    np.testing.assert_allclose(found["anomaly"], -loaded.score_samples(rows), rtol=1e-5)
    assert found["plant"][found["anomaly"].idxmax()] == "p9"
    assert facts["anomaly_threshold"] == pytest.approx(false_alarm_distance(loaded, 0.05))
    assert facts["anomalies"] == (found["anomaly"] > facts["anomaly_threshold"]).sum() >= 1
    told = "the threshold for 5% false alarms (cross-validated)"
    said = drkm("encode", model, table, "-o", codes, "--anomaly", "--force").out
    assert told in said
    assert f"\nfarthest: p9 ({found['anomaly'].max():.3g})" in said


def test_anomalies_choose_the_model_alone_and_need_a_place_in_the_file(table, tmp_path):
    said = refused("fit", table, "-o", tmp_path / "m", "--id", "plant", "--impute", "mean", "--anomalies", "-c", "3")
    assert "anomalies: chooses components itself" in said
    assert "anomaly: " in refused("encode", tmp_path / "m", table, "-o", tmp_path / "c.npy", "--anomaly")


def test_models_of_too_few_samples_have_no_threshold_and_say_so(tmp_path):
    np.save(tmp_path / "few.npy", X[:3])
    np.save(tmp_path / "new.npy", X)
    said = refused("fit", tmp_path / "few.npy", "-o", tmp_path / "few.safetensors", "--anomalies")
    assert "data: strange samples are found by comparison with others, expected at least 4 samples, got 3" in said
    drkm("fit", tmp_path / "few.npy", "-o", tmp_path / "few.safetensors", "--components", "1")
    said = refused("encode", tmp_path / "few.safetensors", tmp_path / "new.npy", "-o", tmp_path / "c.csv", "--anomaly")
    assert "model: strange samples are found by comparison with others, expected at least 4 samples, got 3" in said


@pytest.mark.filterwarnings("ignore::drkm.strange_data.StrangeDataWarning")
@pytest.mark.parametrize("size", [20, 60, 1000])
@pytest.mark.parametrize("row", [0, 90, 177])
def test_a_training_sample_far_from_all_others_does_not_explain_itself(size, row):
    X = StandardScaler().fit_transform(load_wine().data)
    X[row, 0] = size
    detector = AnomalyDetector().fit(X)
    assert detector.predict(X)[row] == -1
    assert detector.score_samples(X)[row] == pytest.approx(-size, rel=0.2)
    assert abs(ConstrDRKM(5).fit(X).denoise(X)[row, 0]) < 5


def test_of_many_samples_some_parts_suffice_for_the_threshold(monkeypatch):
    X = np.random.RandomState(0).randn(300, 3)
    monkeypatch.setattr(choice, "ENOUGH", 100)
    fits: list[int] = []
    eigen = choice.EigenComponents
    monkeypatch.setattr(choice, "EigenComponents", lambda k, X, **given: fits.append(len(X)) or eigen(k, X, **given))
    new = np.random.RandomState(1).randn(2000, 3)
    assert (AnomalyDetector(false_alarms=0.1).fit(X).predict(new) == -1).mean() == pytest.approx(0.1, abs=0.06)
    assert fits == [240, 240]


@pytest.mark.parametrize("size", [5, 60])
def test_the_threshold_is_that_of_models_with_the_same_parameters(size):
    X = np.random.RandomState(0).randn(size, 3) + 3 * (np.arange(size) % 2)[:, None]
    detector = AnomalyDetector(false_alarms=0.3).fit(X)
    assert detector.offset_ == pytest.approx(-false_alarm_distance(detector.model_, 0.3), abs=1e-6)


def test_the_threshold_of_a_model_takes_any_integer_as_its_number_of_components():
    X = np.random.RandomState(0).randn(60, 2)
    for count in (np.int64(58), [58]):
        assert false_alarm_distance(ConstrDRKM(count, tol=1e-2).fit(X), 0.05) > 0
