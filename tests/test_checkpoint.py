"""A fit that is killed and restarted ends at the result of an undisturbed one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from drkm import ConstrDRKM, load
from drkm.files import container, tensor_file
from drkm.gram import Dense
from drkm.inference.first_gram import energy_of
from drkm.kernels import RBF, FeatureMap, Matern
from drkm.machine import memory
from drkm.solvers import LBFGS, Penalty, Status
from drkm.solvers.result import ENTRY, HISTORY_COLUMNS, history_entries, history_tensor
from drkm.training.checkpoint import Checkpoint
from drkm.training.checkpoint.slots import VERSION
from kill_fits import EVERY_SOLVER

X = load_digits().data[:80] / 16

SCRIPT = Path(__file__).with_name("kill_fits.py")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


def kill_fits(kills: int, several: list[dict], timeout: float) -> list[dict]:
    """Return reports of fits that were killed at random moments."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(SCRIPT), str(kills), json.dumps(several)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


@needs_fork
@pytest.mark.parametrize(
    "several",
    [
        [{}, {"n_init": 3}, {"learn_bandwidth": True, "max_iter": 30}, {"dtype": "float32"}],
        pytest.param(
            [
                {"n_init": 3, "learn_bandwidth": True, "init": "orthogonal", "max_iter": 40},
                {"n_init": 2, "center": True, "solver": "trust-region"},
                {"solver": "penalty", "learn_bandwidth": True, "init": "random"},
            ],
            marks=pytest.mark.slow,
        ),
    ],
    ids=["usual", "unusual"],
)
def test_fits_killed_at_random_moments_end_with_equal_bits(several, tmp_path):
    for options, report in zip(several, kill_fits(4, several, 280), strict=True):
        assert report["kills"] >= 4, options
        assert report["resumed"] >= 1, options
        assert report["equal"], options
        assert report["left"] == 0, options


@pytest.mark.slow
@needs_fork
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("options", EVERY_SOLVER, ids=str)
def test_two_hundred_kills_of_every_solver_in_both_precisions_change_no_bit(options):
    kills = 200 // len(EVERY_SOLVER) + 1
    (report,) = kill_fits(kills, [options], 1700)
    assert report["kills"] >= kills
    assert report["equal"], report
    assert report["left"] == 0, report


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


def killed_at(iteration: int):
    def callback(entry):
        if entry["iteration"] == iteration:
            raise Killed

    return callback


def fit(path=None, callbacks=(), data=X, **options) -> ConstrDRKM:
    checkpoint = None if path is None else Checkpoint(path, every=0)
    model = ConstrDRKM(
        **{"n_components": (6, 3), "eta": 1.0, "random_state": 1, **options}, checkpoint=checkpoint, callbacks=callbacks
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(data)


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "lbfgs"},
        {"solver": "trust-region"},
        {"solver": "projected-gradient", "max_iter": 60},
        {"solver": "augmented-lagrangian", "max_iter": 60},
        {"solver": Penalty(inner=30), "init": "random", "n_components": (3, 2)},
        {"solver": Penalty(inner=30), "learn_bandwidth": True, "init": "random", "n_components": (3, 2)},
        {"dtype": "float32"},
        {"center": True, "kernel": [RBF(3.0), Matern(1.5, 0.2)]},
        {"n_components": (4, 2, 2)},
    ],
    ids=str,
)
def test_every_solver_goes_on_where_it_was(options, tmp_path):
    whole = fit(**options)
    seen = []
    last = whole.n_iter_
    for iteration in sorted({1, last // 3, (2 * last) // 3} - {0}):
        with pytest.raises(Killed):
            fit(tmp_path / "checkpoint", killed_at(iteration), **options)
        assert (tmp_path / "checkpoint").exists()
    again = fit(tmp_path / "checkpoint", seen.append, **options)
    assert seen[0]["iteration"] > 0
    np.testing.assert_array_equal(again.codes_, whole.codes_)
    assert again.objective_ == whole.objective_
    assert again.n_iter_ == whole.n_iter_
    assert [e["objective"] for e in again.history_] == [e["objective"] for e in whole.history_]
    assert again.kernels_ == whole.kernels_
    assert not (tmp_path / "checkpoint").exists()


def test_a_checkpoint_does_not_change_the_fit_and_its_file_is_removed(tmp_path):
    for checkpoint in (tmp_path / "a", str(tmp_path / "b"), Checkpoint(tmp_path / "c", every=0)):
        model = ConstrDRKM((6, 3), checkpoint=checkpoint).fit(X)
        np.testing.assert_array_equal(model.codes_, ConstrDRKM((6, 3)).fit(X).codes_)
    assert list(tmp_path.iterdir()) == []


def test_writes_keep_their_distance_in_time(tmp_path):
    checkpoint = Checkpoint(tmp_path / "checkpoint", every=3600)
    times = []

    def look(entry):
        if checkpoint.path.exists():
            times.append(checkpoint.path.stat().st_mtime_ns)

    ConstrDRKM((6, 3), checkpoint=checkpoint, callbacks=look).fit(X)
    assert len(set(times)) == 1


def test_a_model_with_a_checkpoint_can_be_fitted_twice(tmp_path):
    model = ConstrDRKM((6, 3), checkpoint=Checkpoint(tmp_path / "checkpoint", every=0))
    first = model.fit(X).codes_
    np.testing.assert_array_equal(model.fit(X).codes_, first)
    assert model.fit(X[:50]).codes_.shape == (50, 9)


@pytest.fixture
def left_over(tmp_path):
    """The file of a fit that was killed."""
    path = tmp_path / "checkpoint"
    with pytest.raises(Killed):
        fit(path, killed_at(3))
    return path


def refused(path, error=ValueError, **options) -> str:
    content = path.read_bytes()
    with pytest.raises(error, match=r"\S") as caught:
        fit(path, **options)
    assert path.read_bytes() == content
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


@pytest.mark.parametrize(
    "other",
    [
        {"data": X[:79]},
        {"data": X + 1e-12},
        {"n_components": (6, 2)},
        {"kernel": ["rbf", RBF(0.5)]},
        {"kernel": [RBF(2.0), "rbf"]},
        {"eta": (1.0, 2.0)},
        {"center": True},
        {"tol": 1e-5},
        {"solver": "trust-region"},
        {"n_init": 2},
        {"random_state": 2},
        {"dtype": "float32"},
        {"axes": "ica"},
    ],
    ids=lambda other: ",".join(other),
)
def test_other_data_or_parameters_are_refused(left_over, other):
    assert "other data or parameters" in refused(left_over, **other)


def test_starts_that_differ_only_in_the_middle_are_told_apart(tmp_path):
    # Large enough that its text is shortened.
    start = np.linalg.qr(np.random.RandomState(0).randn(80, 15))[0]
    other = start.copy()
    other[40, 7] += 0.1
    sizes = {"n_components": (10, 5)}
    for convert in (np.asarray, torch.tensor):
        path = tmp_path / convert.__name__
        with pytest.raises(Killed):
            fit(path, killed_at(2), init=convert(start), **sizes)
        assert "other data or parameters" in refused(path, init=convert(other), **sizes)
        expected = fit(init=convert(start), **sizes).codes_
        np.testing.assert_array_equal(fit(path, init=convert(start), **sizes).codes_, expected)


def test_feature_maps_that_differ_in_their_numbers_are_told_apart(tmp_path):
    torch.manual_seed(0)
    one, two = torch.nn.Linear(64, 12), torch.nn.Linear(64, 12)
    path = tmp_path / "checkpoint"
    with pytest.raises(Killed):
        fit(path, killed_at(2), kernel=[FeatureMap(one), "rbf"])
    assert "other data or parameters" in refused(path, kernel=[FeatureMap(two), "rbf"])
    expected = fit(kernel=[FeatureMap(one), "rbf"]).codes_
    np.testing.assert_array_equal(fit(path, kernel=[FeatureMap(one), "rbf"]).codes_, expected)


@pytest.mark.slow
def test_a_trainable_feature_map_survives_a_kill(tmp_path):
    torch.manual_seed(0)
    kernel = [FeatureMap(torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.Tanh()), trainable=True), "rbf"]
    whole = fit(kernel=kernel)
    for iteration in (2, 6):
        with pytest.raises(Killed):
            fit(tmp_path / "checkpoint", killed_at(iteration), kernel=kernel)
    np.testing.assert_array_equal(fit(tmp_path / "checkpoint", kernel=kernel).codes_, whole.codes_)


def test_a_kept_checkpoint_of_a_trainable_map_gives_its_trained_weights_back(tmp_path):
    torch.manual_seed(0)
    kernel = [FeatureMap(torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.Tanh()), trainable=True), "rbf"]
    checkpoint = Checkpoint(tmp_path / "checkpoint", every=0, keep=True)
    models = [ConstrDRKM((6, 3), kernel=kernel, max_iter=10, checkpoint=checkpoint) for _ in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first, again = (model.fit(X) for model in models)
    assert again.objective_ == pytest.approx(first.objective_, rel=1e-6)
    for model in (first, again):
        np.testing.assert_allclose(energy_of(model.fitted_).value(model.fitted_.H), model.objective_, rtol=1e-9)


def test_objects_as_parameters_do_not_stop_a_resume(tmp_path):
    make = lambda: {"gram": Dense(), "solver": LBFGS(), "random_state": np.random.RandomState(3), "init": "orthogonal"}  # noqa: E731
    with pytest.raises(Killed):
        fit(tmp_path / "checkpoint", killed_at(3), **make())
    np.testing.assert_array_equal(fit(tmp_path / "checkpoint", **make()).codes_, fit(**make()).codes_)


def test_incidental_parameters_may_change(left_over):
    model = fit(left_over, callbacks=[lambda entry: None], max_seconds=1000.0, device="cpu")
    np.testing.assert_array_equal(model.codes_, fit().codes_)


LONG = {
    "n_components": (3, 2),
    "n_init": 3,
    "init": "random",
    "solver": "projected-gradient",
    "tol": 1e-12,
    "max_iter": 150,
}


def in_third_start(entries=440):
    """Return a callback that kills a fit of `LONG` in its last start."""
    seen = []

    def callback(entry):
        seen.append(entry)
        if len(seen) == entries:
            raise Killed

    return callback


@pytest.fixture
def long(tmp_path):
    """The checkpoint of a fit that was killed in the last of its starts, each with a long history."""
    with pytest.raises(Killed):
        fit(tmp_path / "long", in_third_start(), **LONG)
    return tmp_path / "long"


def assert_ends_as_undisturbed(path, options):
    again, whole = fit(path, **options), fit(**options)
    np.testing.assert_array_equal(again.codes_, whole.codes_)
    assert again.fitted_.objectives == whole.fitted_.objectives
    names = ("iteration", "objective", "stationarity", "feasibility")
    assert [[entry[name] for name in names] for entry in again.history_] == [
        [entry[name] for name in names] for entry in whole.history_
    ]
    assert all(type(entry["iteration"]) is int for entry in again.history_)


def test_histories_do_not_lengthen_the_header_whose_length_has_a_limit(long, monkeypatch):
    _, header = container.read(long, "checkpoint", VERSION)
    assert len(header["finished"]) == 2
    assert len(header["runs"]) == 1
    assert "stationarity" not in json.dumps([run["state"]["history"] for run in header["runs"].values()])
    # A header with these histories as text has seven times this length.
    monkeypatch.setattr(tensor_file, "LARGEST_HEADER", 10_000)
    assert_ends_as_undisturbed(long, LONG)


def test_a_fit_goes_on_from_a_checkpoint_of_version_3_which_has_histories_in_its_header(long):
    tensors, header = container.read(long, "checkpoint", VERSION)
    held = [entry["result"] for entry in header["finished"].values()]
    for values in [*held, *(run["state"] for run in header["runs"].values())]:
        values["history"] = history_entries(tensors.pop(values["history"]["tensor"]))
    container.write(long, tensors, {**header, "version": 3})
    assert_ends_as_undisturbed(long, LONG)


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("history: ", lambda tensors: tensors.pop("finished0.history")),
        ("history: ", lambda tensors: tensors.update({"finished0.history": torch.zeros(3, 4).double()})),
        ("history: ", lambda tensors: tensors.update({"finished0.history": torch.zeros(()).double()})),
        ("history: ", lambda tensors: tensors.update({"run2.history": tensors["run2.history"].float()})),
        ("history: iteration: ", lambda tensors: tensors["run2.history"].add_(0.5)),
        ("history: ", lambda tensors: tensors["finished1.history"].fill_(float("nan"))),
        ("belong together", lambda tensors: tensors.update({"run2.history": tensors["run2.history"][:-1]})),
        ("belong together", lambda tensors: tensors.update({"finished0.history": torch.zeros(0, 5).double()})),
        ("belong together", lambda tensors: tensors["finished1.history"][-1].mul_(2)),
        ("belong together", lambda tensors: tensors["finished0"].zero_()),
    ],
)
def test_forged_histories_and_results_are_refused(part, change, long):
    tensors, header = container.read(long, "checkpoint", VERSION)
    change(tensors)
    container.write(long, tensors, header)
    with pytest.raises(ValueError, match=f"checkpoint: .*is damaged .*{part}"):
        fit(long, **LONG)


def test_a_history_of_which_entries_do_not_fit_into_memory_is_refused(monkeypatch):
    history = history_tensor([dict.fromkeys(HISTORY_COLUMNS, 2.5)] * 100_000)
    tracemalloc.start()
    entries = history_entries(history)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(entries) == 100_000
    assert taken <= ENTRY * 100_000
    monkeypatch.setattr(memory, "available", lambda device: 40_000_000)
    with pytest.raises(memory.NotEnoughMemory, match="path: a history of 100000 entries needs 45 MB"):
        history_entries(history)


def test_a_checkpoint_moves_to_another_path(left_over):
    moved = left_over.rename(left_over.with_name("moved"))
    np.testing.assert_array_equal(fit(moved).codes_, fit().codes_)


def test_what_is_not_a_checkpoint_is_refused(tmp_path):
    path = tmp_path / "file"
    fit().save(path)
    assert "not a drkm checkpoint" in refused(path)
    save_file({"a": torch.ones(2)}, path)
    assert "not a drkm checkpoint" in refused(path)
    path.write_bytes(b"no safetensors at all")
    assert "not a drkm checkpoint" in refused(path)
    path.write_bytes(b"")
    refused(path)


def test_a_truncated_checkpoint_is_refused(left_over):
    content = left_over.read_bytes()
    for length in np.linspace(0, len(content) - 1, 10).astype(int):
        left_over.write_bytes(content[:length])
        assert "truncated" in refused(left_over)


def test_a_flipped_bit_in_a_checkpoint_is_noticed(left_over):
    content = left_over.read_bytes()
    random = np.random.RandomState(0)
    for position in random.randint(0, len(content), 100):
        damaged = bytearray(content)
        damaged[position] ^= 1 << random.randint(8)
        left_over.write_bytes(damaged)
        refused(left_over)


@pytest.mark.parametrize("key", ["fingerprint", "finished", "runs"])
def test_a_checkpoint_without_a_part_is_refused(left_over, key):
    tensors, header = container.read(left_over, "checkpoint", VERSION)
    container.write(left_over, tensors, {name: value for name, value in header.items() if name != key})
    refused(left_over)


@pytest.mark.parametrize("key", ["stage", "sigma2", "state"])
def test_a_checkpoint_without_a_part_of_a_run_is_refused(left_over, key):
    tensors, header = container.read(left_over, "checkpoint", VERSION)
    del header["runs"]["0"][key]
    container.write(left_over, tensors, header)
    assert "damaged" in refused(left_over)


def forge(path, change) -> None:
    """Write the checkpoint again with a changed run and right checksums."""
    tensors, header = container.read(path, "checkpoint", VERSION)
    change(tensors, header["runs"]["0"])
    container.write(path, tensors, header)


def without_preconditioner(tensors, run) -> None:
    for name in [name for name in tensors if name.startswith("run0.preconditioner")]:
        del tensors[name]
    run["state"]["preconditioner"] = None


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("G: ", lambda tensors, run: tensors.pop("run0.G")),
        ("G: ", lambda tensors, run: tensors.update({"run0.G": tensors["run0.G"].float()})),
        ("G: ", lambda tensors, run: run["state"].update(G=[1.0])),
        ("G: ", lambda tensors, run: run["state"].update(G=run["state"]["H"])),
        ("G: ", lambda tensors, run: run["state"].update(G={"tensor": ["run0.G"]})),
        ("R: ", lambda tensors, run: tensors.update({"run0.R": tensors["run0.R"][:-1].clone()})),
        ("H: ", lambda tensors, run: tensors["run0.H"].fill_(float("nan"))),
        ("curvature: ", lambda tensors, run: run["state"].update(curvature=[])),
        ("curvature: ", lambda tensors, run: tensors.pop("run0.curvature.0")),
        ("preconditioner: scale: ", lambda tensors, run: tensors.pop("run0.preconditioner.scale")),
        ("preconditioner: 'more': ", lambda tensors, run: run["state"]["preconditioner"].update(more=1)),
        ("preconditioner: ", lambda tensors, run: run["state"].update(preconditioner=1.0)),
        ("belong together", lambda tensors, run: without_preconditioner(tensors, run)),
        ("S: ", lambda tensors, run: run["state"].update(S=10**6)),
        ("S: ", lambda tensors, run: run["state"].update(S=[None] * 1000)),
        ("belong together", lambda tensors, run: tensors.pop(run["state"]["S"].pop()["tensor"])),
        ("'run0.S.0': ", lambda tensors, run: [run["state"][name].pop(0) for name in "SY"]),
        ("belong together", lambda tensors, run: run["state"].update(objective=-1.0)),
        ("age: ", lambda tensors, run: run["state"].update(age="old")),
        ("status: ", lambda tensors, run: run["state"].update(status="done")),
        ("evaluations: ", lambda tensors, run: run["state"].update(evaluations=-1)),
        ("seconds: ", lambda tensors, run: run["state"].update(seconds=10**400)),
        ("history: ", lambda tensors, run: run["state"].update(history=[{}])),
        ("'more': ", lambda tensors, run: run["state"].update(more=1)),
        ("'run0.more': ", lambda tensors, run: tensors.update({"run0.more": torch.ones(2)})),
        ("sigma2: ", lambda tensors, run: run.update(sigma2=[1.0])),
        ("sigma2: ", lambda tensors, run: run.update(sigma2=[1.0, None])),
        ("stage: ", lambda tensors, run: run.update(stage=1)),
        ("state: ", lambda tensors, run: run.update(state=None)),
    ],
)
def test_a_forged_part_of_a_run_is_named(left_over, part, change):
    forge(left_over, change)
    message = refused(left_over)
    assert "damaged" in message
    assert part in message


def test_a_checkpoint_of_an_older_version_is_refused(left_over):
    tensors, header = container.read(left_over, "checkpoint", VERSION)
    container.write(left_over, tensors, {**header, "version": 1})
    assert "older drkm" in refused(left_over)


def test_a_checkpoint_is_not_a_model(left_over):
    with pytest.raises(ValueError, match="not a drkm model"):
        load(left_over)


def test_a_folder_as_checkpoint_and_a_missing_folder_are_refused(tmp_path):
    with pytest.raises((ValueError, OSError), match=str(tmp_path)):
        fit(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"checkpoint: there is no folder .*nowhere"):
        fit(tmp_path / "nowhere" / "checkpoint")


def test_a_fit_stopped_by_ctrl_c_goes_on_from_its_checkpoint(tmp_path):
    def interrupt(entry):
        if entry["iteration"] == 5:
            raise KeyboardInterrupt

    path = tmp_path / "checkpoint"
    stopped = fit(path, interrupt)
    assert not stopped.converged_
    assert path.exists()
    seen = []
    again = fit(path, seen.append)
    assert seen[0]["iteration"] > 0
    np.testing.assert_array_equal(again.codes_, fit().codes_)
    assert not path.exists()


@pytest.mark.parametrize("learns", [False, True])
def test_ctrl_c_in_a_step_stores_the_last_point_however_recent_the_last_write_was(tmp_path, monkeypatch, learns):
    checkpoint = Checkpoint(tmp_path / "checkpoint", every=3600)
    step = LBFGS.step

    def interrupted(solver, energy, state, tol):
        if state.iteration == 5:
            raise KeyboardInterrupt
        return step(solver, energy, state, tol)

    with monkeypatch.context() as patch, warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        patch.setattr(LBFGS, "step", interrupted)
        ConstrDRKM((6, 3), eta=1.0, random_state=1, checkpoint=checkpoint, learn_bandwidth=learns).fit(X)
    seen = []
    again, whole = fit(checkpoint.path, seen.append, learn_bandwidth=learns), fit(learn_bandwidth=learns)
    assert seen[0]["iteration"] == 5
    np.testing.assert_array_equal(again.codes_, whole.codes_)
    assert again.fitted_.result.n_evaluations == whole.fitted_.result.n_evaluations


def test_ctrl_c_before_the_first_iteration_leaves_nothing_that_would_change_the_result(tmp_path, monkeypatch):
    def interrupted(*words):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LBFGS, "prepare", interrupted)
        assert not fit(tmp_path / "checkpoint").converged_
    np.testing.assert_array_equal(fit(tmp_path / "checkpoint").codes_, fit().codes_)


@pytest.mark.parametrize("learns", [False, True])
def test_a_fit_that_is_out_of_time_goes_on_when_it_gets_more(tmp_path, learns):
    path = tmp_path / "checkpoint"
    iterations = []

    def slow(entry):
        iterations.append(entry["iteration"])
        if entry["iteration"] == 3:
            time.sleep(0.3)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Written when it stops, although the last write was recent.
        late = ConstrDRKM(
            (6, 3),
            eta=1.0,
            random_state=1,
            checkpoint=Checkpoint(path, every=1000),
            max_seconds=0.25,
            callbacks=slow,
            learn_bandwidth=learns,
        ).fit(X)
    assert not late.converged_
    assert path.exists()
    seen = []
    again = fit(path, seen.append, learn_bandwidth=learns)
    assert again.converged_
    assert seen[0]["iteration"] == iterations[-1] >= 3
    assert not path.exists()


def test_seconds_of_all_rounds_of_learning_count_before_and_after_a_kill(tmp_path):
    path, began, told = tmp_path / "checkpoint", [], []

    def slow(entry):
        time.sleep(0.05)
        began.append(entry["iteration"] == 0)
        told.append(entry["seconds"])
        if sum(began) == 4:
            raise Killed

    with pytest.raises(Killed):
        fit(path, slow, learn_bandwidth=True)
    assert told == sorted(told)
    assert told[-1] >= 0.05 * (len(told) - 1)
    again = fit(path, learn_bandwidth=True, max_seconds=0.9 * told[-1])
    assert again.fitted_.result.status is Status.MAX_SECONDS
    assert again.fitted_.seconds > again.fitted_.result.seconds > 0.9 * told[-1]
    assert fit(path, learn_bandwidth=True, max_seconds=1000).fitted_.result.seconds > told[-1]


def test_several_starts_that_are_out_of_time_all_go_on(tmp_path):
    # A solver whose starts do not depend on the remaining time.
    path, options = tmp_path / "checkpoint", {"n_init": 3, "solver": "trust-region"}
    whole = fit(**options)
    for seconds in (0.01, 0.03, 1000):
        again = fit(path, lambda entry: time.sleep(0.006), max_seconds=seconds, **options)
        assert path.exists() == (seconds < 1)
    np.testing.assert_array_equal(again.codes_, whole.codes_)
    assert again.fitted_.objectives == whole.fitted_.objectives


def test_a_checkpoint_that_is_kept_holds_the_finished_fit_until_it_is_removed(tmp_path):
    kept = Checkpoint(tmp_path / "checkpoint", every=0, keep=True)
    whole = ConstrDRKM((6, 3), checkpoint=kept).fit(X)
    assert kept.path.exists()
    seen = []
    again = ConstrDRKM((6, 3), checkpoint=Checkpoint(kept.path, keep=True), callbacks=seen.append).fit(X)
    assert seen == []
    np.testing.assert_array_equal(again.codes_, whole.codes_)
    kept.remove()
    assert not kept.path.exists()


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize(
    "last",
    [
        "drkm.training.run.record_of",
        "drkm.training.run.without_samples",
        "drkm.ConstrDRKM._set_fitted",
        "drkm.strange_data.complaints",
    ],
)
def test_an_error_after_the_last_iteration_leaves_the_checkpoint(tmp_path, monkeypatch, last, error):
    def fails(*words):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(last, fails)
        with pytest.raises(error):
            fit(tmp_path / "checkpoint")
    seen = []
    np.testing.assert_array_equal(fit(tmp_path / "checkpoint", seen.append).codes_, fit().codes_)
    assert seen == []
    assert not (tmp_path / "checkpoint").exists()
