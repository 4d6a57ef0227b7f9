"""A fit ends at the first iteration that reaches its tolerance; the remaining error is corrected or reported."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from drkm import ConstrDRKM, load
from drkm.solvers import Penalty, Status

CELLS = StandardScaler().fit_transform(load_breast_cancer().data)[:150]
TOLERANCES = (1e-2, 1e-4, 1e-6)
SOLVERS = {
    "lbfgs": {"solver": "lbfgs"},
    "trust-region": {"solver": "trust-region"},
    "projected-gradient": {"solver": "projected-gradient", "max_iter": 3000},
    "augmented-lagrangian": {"solver": "augmented-lagrangian", "max_iter": 3000},
    "penalty": {"solver": Penalty(learning_rate=1e-2, outer=10, growth=4.0)},
    "eigensolver": {"solver": "auto", "n_components": 5},
}


def fitted(X=CELLS, **more):
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return ConstrDRKM(**{"n_components": (5, 3), "eta": (1, 10), **more}).fit(X)


def reached(entry, tol):
    return max(entry["stationarity"], entry["feasibility"]) <= tol


def relative_residual(record):
    """Recompute the stationarity from the record of the fit."""
    gradient = record.H @ record.multipliers.to(record.H.dtype) + record.residual
    return (record.residual.norm() / gradient.norm()).item()


@pytest.mark.parametrize("tol", TOLERANCES)
@pytest.mark.parametrize("name", SOLVERS)
def test_the_first_iteration_that_reaches_the_tolerance_is_the_last(name, tol):
    model = fitted(eta=1.0, tol=tol, **SOLVERS[name])
    *earlier, last = model.history_
    assert not any(reached(entry, tol) for entry in earlier)
    assert model.converged_ == reached(last, tol)
    assert not model.converged_ or relative_residual(model.fitted_) <= 1.01 * tol
    assert model.n_iter_ == max(1, last["iteration"])
    # Algorithm 1 does not converge to smaller tolerances.
    assert model.converged_ or (name == "penalty" and tol < 1e-2)


#: fits that need more iterations than these; Algorithm 1 stops by its schedule, and the eigensolver needs only one
STOPPED = {
    **{name: {"solver": name, "max_iter": 3} for name in SOLVERS if "-" in name or name == "lbfgs"},
    "penalty": {"solver": Penalty(inner=2, outer=2)},
    "learn_bandwidth": {"learn_bandwidth": True, "max_iter": 3},
    "two starts": {"n_init": 2, "init": "random", "max_iter": 3},
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("tol", [1e-9, 1e-5])
@pytest.mark.parametrize("name", STOPPED)
def test_a_fit_that_is_stopped_above_its_tolerance_never_says_that_it_converged(name, tol, dtype):
    asked = {"n_components": (5, 3), "eta": (1, 10), **STOPPED[name]}
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        model = ConstrDRKM(**asked, tol=tol, dtype=dtype).fit(CELLS)
    assert not model.converged_
    assert model.fitted_.result.status is (Status.SCHEDULE_ENDED if name == "penalty" else Status.MAX_ITER)
    assert not reached(model.history_[-1], tol)
    assert "did not converge" in model.summary()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("tol", TOLERANCES)
@pytest.mark.parametrize("center", [False, True])
def test_a_loose_fit_gives_its_samples_their_codes_back(tol, center, dtype):
    model = fitted(tol=tol, center=center, dtype=dtype)
    error = np.linalg.norm(model.transform(CELLS) - model.codes_) / np.linalg.norm(model.codes_)
    # Newton ends at a relative residual of 1e-10, or 20 rounding errors, which weak directions magnify.
    assert error < (1e-7 if dtype == "float64" else 1e-3)


def test_points_close_to_a_sample_have_codes_close_to_its_own():
    model = fitted(tol=1e-2)
    codes = model.transform(CELLS + 1e-9)
    assert np.linalg.norm(codes - model.codes_) < 1e-4 * np.linalg.norm(model.codes_)


def test_a_loose_fit_does_so_after_a_file_too(tmp_path):
    model = fitted(tol=1e-2)
    model.save(tmp_path / "loose.safetensors")
    again = load(tmp_path / "loose.safetensors")
    np.testing.assert_array_equal(again.transform(CELLS), model.transform(CELLS))
    assert again.summary() == model.summary()


def test_a_tolerance_that_leaves_codes_off_says_so():
    asked = {"n_components": (10, 5), "eta": (1, 10)}
    loose = ConstrDRKM(**asked, tol=1e-2).fit(CELLS)
    assert loose.converged_
    assert "codes of small energy are still off by" in loose.summary()
    assert "still off" not in ConstrDRKM(**asked, tol=1e-6).fit(CELLS).summary()


def test_codes_that_are_far_worse_than_a_strict_tolerance_are_warned_of():
    with pytest.warns(ConvergenceWarning, match=r"codes of small energy are still off by \d+%: lower tol, divide X by"):
        model = ConstrDRKM((5, 3), eta=(1, 3000), tol=1e-4).fit(CELLS)
    assert model.converged_
