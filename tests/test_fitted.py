import os
import pickle
import sys
import time
import traceback
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from drkm import ConstrDRKM, gram, load
from drkm.experiments.disentanglement._distances import RememberedDistances
from drkm.files.rows import AbsentRows
from drkm.fitted import FEW_ENTRIES
from drkm.gram import Dense, Fourier, Nystroem, Tiled
from drkm.solvers import solve
from drkm.training import run
from few_digits import DIGITS

X = DIGITS[:300]
#: fewer features than components of the model
NARROW = np.cos(np.random.RandomState(0).rand(400, 2) @ np.random.RandomState(1).randn(2, 6) * 4)
EVERY = Nystroem(len(NARROW), deep=Dense())
STRATEGIES = [Dense(), Tiled(memory=50e6), RememberedDistances(), Nystroem(50), EVERY, Fourier()]
KNOWN_TO_FILES = [strategy for strategy in STRATEGIES if strategy.name != "remembered distances"]


@pytest.fixture(params=[False, True], ids=["plain", "centred"])
def center(request):
    return request.param


@pytest.mark.filterwarnings("ignore:ConstrDRKM. the tolerance is reached:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("samples", [X, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.name)
def test_a_pickle_and_a_file_are_hardly_larger_than_samples_and_codes(tmp_path, strategy, samples):
    # Centring adds one number per sample.
    model = ConstrDRKM((6, 3), gram=strategy, center=True, tol=1e-3).fit(samples)
    model.denoise(samples[:3])
    model.save(tmp_path / "model")
    most = 1.5 * (samples.nbytes + model.codes_.nbytes)
    assert os.path.getsize(tmp_path / "model") < most
    assert len(pickle.dumps(model)) < most


def test_a_pickle_holds_little_besides_its_numbers():
    model = ConstrDRKM((6, 3), gram=Nystroem(50), tol=1e-2).fit(NARROW)
    fitted = replace(model.fitted_, result=replace(model.fitted_.result, history=[]))
    tensors = (fitted.X, fitted.H, fitted.residual, fitted.multipliers, *fitted.rotation, fitted.landmarks)
    # A pickled tensor takes 400 bytes more than its numbers, an array 140.
    assert len(pickle.dumps(fitted)) < sum(tensor.nbytes for tensor in tensors) + 2700


@pytest.mark.parametrize("strategy", KNOWN_TO_FILES, ids=lambda strategy: strategy.name)
def test_a_model_that_was_put_away_answers_with_the_same_bits(tmp_path, strategy, center):
    _check_same_bits(ConstrDRKM((6, 3), gram=strategy, center=center, tol=1e-3).fit(X), X[:20], tmp_path)


@pytest.mark.parametrize("kept", [True, False], ids=["samples", "features"])
def test_features_of_narrow_samples_are_formed_again_with_the_same_bits(tmp_path, center, kept, monkeypatch):
    if not kept:
        monkeypatch.setattr("drkm.fitted.FORMED_AGAIN", 0)
    model = ConstrDRKM((6, 3), gram=Nystroem(50), center=center, tol=1e-2).fit(NARROW)
    assert isinstance(model.fitted_.X, AbsentRows) != kept
    _check_same_bits(model, NARROW[:20], tmp_path)


def _check_same_bits(model, points, tmp_path):
    model.save(tmp_path / "model")
    answers = {call: getattr(model, call)(points) for call in ("transform", "denoise", "score")}
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.codes_, model.codes_)
        np.testing.assert_array_equal(again.multipliers_, model.multipliers_)
        for call, answer in answers.items():
            np.testing.assert_array_equal(getattr(again, call)(points), answer)
        np.testing.assert_array_equal(again.sample(5, random_state=0), model.sample(5, random_state=0))
        assert again.summary() == model.summary()


def test_some_of_a_long_history_is_put_away_with_its_first_and_last_entry(tmp_path):
    model = ConstrDRKM((3, 2), solver="projected-gradient", tol=1e-7, max_iter=5000).fit(X[:20])
    whole = model.history_
    assert len(whole) > 2 * FEW_ENTRIES
    model.save(tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        some = again.history_
        assert FEW_ENTRIES / 2 < len(some) <= FEW_ENTRIES + 1
        assert [entry for entry in whole if entry in some] == some
        assert (some[0], some[-1], again.n_iter_) == (whole[0], whole[-1], model.n_iter_)
    assert model.history_ is whole


def test_a_loaded_model_encodes_without_a_gram_matrix_of_the_samples(tmp_path, monkeypatch, center):
    model = ConstrDRKM((6, 3), center=center, tol=1e-3).fit(X)
    model.save(tmp_path / "model")
    codes = model.transform(X[:20])

    def refuse(*_):
        raise AssertionError("K_1 was formed")

    monkeypatch.setattr(gram.Dense, "fixed", refuse)
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(X[:20]), codes)
    assert again.summary() == model.summary()
    with pytest.raises(AssertionError, match="K_1 was formed"):
        again.denoise(X[:2])


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="resident memory is read from /proc")
def test_a_model_of_20000_samples_is_read_in_half_a_second_and_60_megabytes(tmp_path):
    from benchmarks import model_size

    path, small = model_size.written(tmp_path, 20_000), model_size.written(tmp_path, 100)
    runs = [model_size.in_own_process(path, small)["load"] for _ in range(3)]
    assert min(run["seconds"] for run in runs) < 0.5
    assert min(run["beyond"] for run in runs) < 60e6


def test_the_record_cannot_be_changed():
    fitted = ConstrDRKM((3, 2), tol=1e-2).fit(X).fitted_
    with pytest.raises(FrozenInstanceError):
        fitted.eta = (1.0, 1.0)


def test_the_seconds_of_a_fit_are_those_of_all_its_starts_and_stay_with_the_model(tmp_path):
    calls = []

    def wait(entry):
        calls.append(entry)
        time.sleep(0.002)

    began = time.perf_counter()
    model = ConstrDRKM((3, 2), n_init=3, tol=1e-2, random_state=0, callbacks=wait).fit(X)
    assert 0.002 * len(calls) < model.fitted_.seconds < time.perf_counter() - began
    assert model.fitted_.result.seconds < model.fitted_.seconds
    assert f", {model.fitted_.seconds:.2f} s" in model.summary()
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").summary() == model.summary()


def test_the_seconds_of_a_resumed_fit_count_what_was_spent_before(tmp_path):
    def stop(entry):
        time.sleep(0.2)
        return entry["iteration"] == 2

    options = {"n_components": (3, 2), "eta": 1.0, "tol": 1e-3, "checkpoint": tmp_path / "part"}
    with pytest.warns(ConvergenceWarning):
        ConstrDRKM(**options, callbacks=stop).fit(X)
    began = time.perf_counter()
    model = ConstrDRKM(**options).fit(X)
    assert model.fitted_.seconds > time.perf_counter() - began
    assert model.fitted_.seconds > 0.4


def test_fit_reaches_a_solver_within_four_frames(monkeypatch):
    depths = []

    def counted(*arguments, **options):
        frames = [frame for frame in traceback.extract_stack() if "/drkm/" in frame.filename]
        depths.append(len(frames))
        return solve(*arguments, **options)

    monkeypatch.setattr("drkm.training.run.solve", counted)
    ConstrDRKM((3, 2), tol=1e-2).fit(X)
    assert depths == [4]


def test_gram_is_read_once_per_fit(monkeypatch):
    read = []
    monkeypatch.setattr(gram, "by_name", lambda name: read.append(name) or Dense())
    ConstrDRKM((3, 2), tol=1e-2).fit(X)
    assert read == ["auto"]


@pytest.mark.parametrize("axes", ["ritz", "varimax", None])
def test_a_fit_ends_with_one_product_with_the_first_gram_matrix(axes, monkeypatch):
    record_of, seen = run.record_of, []

    def watched(energy, *others):
        matmul = energy.first.matmul
        monkeypatch.setattr(energy.first, "matmul", lambda A: seen.append(A.shape) or matmul(A))
        return record_of(energy, *others)

    monkeypatch.setattr(run, "record_of", watched)
    ConstrDRKM((4, 2), axes=axes, gram=Tiled(keep=0)).fit(X)
    assert seen == [(len(X), 4)]
