"""A sharded fit in a group of one process: the same result, and one-sentence errors."""

from __future__ import annotations

import math
import os
import pickle
import signal
import weakref

import numpy as np
import pytest
import torch
import torch.distributed as dist
from sklearn.exceptions import ConvergenceWarning

import drkm
from drkm import ConstrDRKM
from drkm.distributed.process_group import ProcessLost
from drkm.gram import Dense, Fourier, Nystroem, Sharded, Tiled
from drkm.kernels import RBF, FeatureMap

INNER = Nystroem(m=30, deep=Fourier(features=40))
X = np.random.default_rng(0).normal(size=(90, 4))


@pytest.fixture
def alone(tmp_path):
    """A group whose only process is this one."""
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def estimator(**options) -> ConstrDRKM:
    return ConstrDRKM((3, 2), **{"gram": Sharded(INNER), "tol": 1e-7, **options})


def at_iteration(number, action):
    """Return a callback that does something once, at one iteration."""

    def callback(entry):
        if entry["iteration"] == number:
            action()

    return callback


@pytest.mark.usefixtures("alone")
class TestOneProcess:
    @pytest.mark.parametrize("options", [{}, {"center": True}, {"init": "random", "random_state": 1}])
    def test_gives_the_result_of_the_features_that_it_shares(self, options):
        shared, plain = estimator(**options).fit(X), estimator(gram=INNER, **options).fit(X)
        assert shared.objective_ == pytest.approx(plain.objective_, rel=1e-10)
        new = X[:7] + 0.1
        for name in ("transform", "denoise"):
            np.testing.assert_allclose(getattr(shared, name)(new), getattr(plain, name)(new), rtol=1e-5, atol=1e-6)
        assert shared.summary().splitlines()[:4] == plain.summary().splitlines()[:4]

    def test_is_to_be_had_by_name(self):
        model = ConstrDRKM((3, 2), gram="sharded").fit(X)
        exact = ConstrDRKM((3, 2), gram="dense").fit(X)
        assert model.objective_ == pytest.approx(exact.objective_, rel=1e-9)

    @pytest.mark.parametrize("inner", [Dense(), Tiled(), Tiled(keep=0), Tiled(keep=90 * 90 * 3)])
    @pytest.mark.parametrize("center", [False, True])
    def test_is_exact_however_much_is_kept(self, inner, center):
        options = {"center": center, "tol": 1e-11}
        shared, plain = (estimator(gram=gram, **options).fit(X) for gram in (Sharded(inner), "dense"))
        new = X[:7] + 0.1
        for name in ("transform", "denoise"):
            np.testing.assert_allclose(getattr(shared, name)(new), getattr(plain, name)(new), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(shared.codes_, plain.codes_, atol=1e-8)

    def test_an_exact_one_survives_its_file_and_a_pickle(self, tmp_path):
        model = estimator(gram="sharded").fit(X)
        model.save(tmp_path / "model")
        for again in (drkm.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
            np.testing.assert_allclose(again.transform(X[:5]), model.transform(X[:5]), atol=1e-9)
            np.testing.assert_array_equal(again.codes_, model.codes_)

    def test_learns_bandwidths_exactly(self):
        options = {"learn_bandwidth": True, "kernel": [RBF(), RBF()], "tol": 1e-8}
        shared, plain = (estimator(gram=gram, **options).fit(X) for gram in ("sharded", "dense"))
        widths = [[kernel.sigma2 for kernel in model.kernels_] for model in (shared, plain)]
        np.testing.assert_allclose(*widths, rtol=1e-5)

    def test_takes_a_group_of_the_caller(self):
        model = estimator(gram=Sharded(INNER, group=dist.group.WORLD)).fit(X)
        assert model.objective_ == estimator().fit(X).objective_
        assert dist.is_initialized()

    def test_what_was_exchanged_last_outlives_the_group(self, monkeypatch):
        exchanged, alive = [], []
        reduce, destroy = dist.all_reduce, dist.destroy_process_group

        def watched(tensor, **options):
            exchanged.append(weakref.ref(tensor))
            reduce(tensor, **options)

        def noted(group):
            alive.append(exchanged[-1]() is not None)
            destroy(group)

        monkeypatch.setattr(dist, "all_reduce", watched)
        monkeypatch.setattr(dist, "destroy_process_group", noted)
        estimator().fit(X)
        monkeypatch.undo()
        assert alive == [True]

    def test_survives_its_file(self, tmp_path):
        model = estimator().fit(X)
        model.save(tmp_path / "model")
        again = drkm.load(tmp_path / "model")
        assert again.gram == INNER
        np.testing.assert_allclose(again.transform(X[:5]), model.transform(X[:5]), atol=1e-9)

    def test_refuses_kernels_of_neither_pairs_nor_features(self):
        with pytest.raises(ValueError, match=r"gram: processes cannot share Precomputed in layer 1 with Tiled: "):
            estimator(gram="sharded", kernel=["precomputed", "rbf"]).fit(X @ X.T)

    def test_refuses_to_train_a_feature_map(self):
        kernel = [FeatureMap(torch.nn.Linear(4, 6).double(), trainable=True), RBF()]
        with pytest.raises(ValueError, match=r'gram: "sharded" cannot train a feature map'):
            estimator(kernel=kernel).fit(X)


def test_needs_a_process_group():
    with pytest.raises(ValueError, match=r'gram: "sharded" needs a process group, call .*init_process_group'):
        estimator().fit(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inner": "nystroem"}, r"inner: expected a drkm.gram object, got 'nystroem'"),
        ({"timeout": 0.0}, r"timeout: expected a positive number, got 0.0"),
        ({"timeout": math.inf}, r"timeout: expected a positive number, got inf"),
        ({"timeout": "1 h"}, r"timeout: expected a positive number, got '1 h'"),
    ],
)
def test_bad_values_are_named(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Sharded(**options)


@pytest.mark.usefixtures("alone")
class TestSignals:
    def test_an_end_by_torchrun_is_said_in_one_sentence(self, tmp_path):
        path = tmp_path / "state"
        callback = at_iteration(3, lambda: os.kill(os.getpid(), signal.SIGTERM))
        with pytest.raises(ProcessLost, match=rf"process 0 of 1 cannot go on.*torchrun.*last checkpoint is {path}"):
            estimator(callbacks=callback, checkpoint=path).fit(X)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL

    def test_the_first_interruption_ends_the_fit_in_order(self, tmp_path):
        path = tmp_path / "state"
        callback = at_iteration(4, lambda: os.kill(os.getpid(), signal.SIGINT))
        with pytest.warns(ConvergenceWarning, match="interrupted after 4 iterations"):
            estimator(callbacks=callback, checkpoint=drkm.training.checkpoint.Checkpoint(path, every=0.0)).fit(X)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert estimator(checkpoint=path).fit(X).objective_ == estimator().fit(X).objective_
        assert not list(tmp_path.glob("state*"))

    def test_the_second_interruption_acts_at_once(self):
        def twice():
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

        with pytest.raises(SystemExit, match="process 0 of 1 was interrupted a second time; there is no checkpoint"):
            estimator(callbacks=at_iteration(2, twice)).fit(X)

    def test_a_handler_of_the_caller_stays(self):
        seen = []
        before = signal.signal(signal.SIGTERM, lambda *_: seen.append(True))
        try:
            estimator(callbacks=at_iteration(2, lambda: os.kill(os.getpid(), signal.SIGTERM))).fit(X)
        finally:
            signal.signal(signal.SIGTERM, before)
        assert seen == [True]


@pytest.mark.usefixtures("alone")
def test_an_exchange_that_fails_is_said_in_one_sentence(monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("[/a/b/pair.cc:534] Connection closed by peer [127.0.0.1]:1\nmore that nobody needs")

    callback = at_iteration(2, lambda: monkeypatch.setattr(dist, "all_reduce", fail))
    with pytest.raises(ProcessLost) as raised:
        estimator(callbacks=callback).fit(X)
    message = str(raised.value)
    assert "another process of the group was lost (Connection closed by peer [127.0.0.1]:1)" in message
    assert "there is no checkpoint, pass checkpoint=" in message
    assert "\n" not in message
