"""Results in a store with right checksums and wrong fields: the report refuses them with one sentence."""

import json
import math

import numpy as np
import pytest

from drkm.experiments.denoising import digits
from drkm.experiments.denoising._panels import COMPONENTS
from drkm.experiments.denoising._problems import BOUND, FIRST_MEASURE, NOISY, ORDER, TWO_LAYERS
from drkm.experiments.registry import EXPERIMENTS, TASKS
from drkm.experiments.report.page import page
from drkm.experiments.report.writing import gather
from drkm.experiments.request import Request
from drkm.runs._rows import SEAL
from drkm.runs.attempt import Attempt, as_json
from drkm.runs.store import Store
from experiments.test_studies import made_up as made_up_scores
from fuzz.forgeries import forged_objects

pytest.importorskip("matplotlib").use("Agg")


def made_up(run, rng):
    """Return a result of a run of any experiment."""
    error = lambda: 0.1 + rng.random()  # noqa: E731
    match run.task:
        case "denoise-cell":
            methods = [{"method": name, "chosen": "words", "mse": error(), "distance": error()} for name in ORDER]
            words = {"β": "as published", "steps": "converged", "measure": FIRST_MEASURE}
            widths = {"kernel PCA σ²": "0.1", "deep σ²": "0.1 / scale"}
            protocol = [{**words, "kernel PCA": error(), "deep": error(), **widths}]
            return {"estimated noise": error(), "errors": methods, "protocol": protocol}
        case "denoise-panels":
            errors = {name: error() for name in ("mse", "distance", "gap")}
            names = (NOISY, *COMPONENTS, TWO_LAYERS, BOUND)
            panels = [{"name": name, **errors, "points": rng.random((3, 2)).tolist()} for name in names]
            return {"σ²": error(), "steps": None, "selected": [4, 2], "panels": panels}
        case "digits":
            images = {"images": rng.random((2, 64)).tolist()}
            names = (digits.NOISY, digits.RIVAL, digits.ONE, digits.TWO, digits.CLEAN)
            methods = [{"method": name, "mse": error(), "chosen": "words", **images} for name in names]
            return {"estimated noise": error(), "methods": methods}
    return made_up_scores(run, rng)


@pytest.fixture(params=EXPERIMENTS)
def written(request, tmp_path):
    """Return the name of an experiment and a store with results of all its runs."""
    rng, path = np.random.default_rng(0), tmp_path / "runs.sqlite"
    with Store(path, TASKS) as store:
        for run in dict.fromkeys(EXPERIMENTS[request.param].configurations("quick")):
            known = TASKS.identify(run)
            assert store.claim(known, "me")
            result = as_json(made_up(run, rng))
            assert store.finish(known.key, "me", Attempt("done", result, seconds=1.0, environment='{"device":"cpu"}'))
    return request.param, path


def check(name, path, count, seed, show=lambda report: None):
    """Forge results one after the other and show them; return how many were refused, with one sentence each."""
    refused = 0
    show(gather(path, Request([name])))
    with Store(path, TASKS) as store:
        rows = store._all("SELECT key, configuration, result FROM runs")
        for number in range(count):
            key, configuration, result = rows[number % len(rows)]
            (forged,) = forged_objects(json.loads(result), 1, seed + number)
            put(store, key, json.dumps(forged.header))
            try:
                show(gather(path, Request([name])))
            except ValueError as error:
                refused += 1
                said = str(error)
                assert said.startswith(f"store: {path}: the result of {configuration}"), f"{forged.what}: {said}"
                assert said.isprintable(), f"{forged.what}: {said}"
            put(store, key, result)
    return refused


def put(store, key, result):
    with store.writing() as connection:
        connection.execute("UPDATE runs SET result = ? WHERE key = ?", (result, key))
        connection.execute(f"{SEAL} WHERE key = ?", (key,))


def test_forged_results_are_shown_or_refused_with_the_store_and_the_run(written):
    assert check(*written, 12, seed=0)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(1, 4))
def test_many_forged_results_are_shown_or_refused_with_the_store_and_the_run(written, part):
    # Many scores of a study can have other values that nothing contradicts.
    assert check(*written, 100, seed=1000 * part, show=page) > 40


@pytest.mark.parametrize(("written", "name"), [("digits", "images"), ("figure2", "points")], indirect=["written"])
def test_a_whole_number_that_fits_no_integer_of_the_machine_is_drawn(written, name):
    experiment, path = written
    with Store(path, TASKS) as store:
        key, result = store._all("SELECT key, result FROM runs")[0]
        forged = json.loads(result)
        forged["methods" if name == "images" else "panels"][1][name][0][0] = 10**25
        put(store, key, json.dumps(forged))
    assert "<img" in page(gather(path, Request([experiment])))


@pytest.mark.parametrize("value", [None, True, "0.5", [0.5], {}, math.nan, math.inf, 10**400, -1, 0, 1e31, 1e-31])
def test_what_is_no_error_that_was_measured_is_refused(value):
    (run,) = EXPERIMENTS["figure2"].configurations("quick")
    task, whole = TASKS.task_of(run), made_up(run, np.random.default_rng(0))
    task.check(whole, run.parameters)
    with pytest.raises((TypeError, ValueError), match=r"^result: σ²: expected a (finite )?number"):
        task.check({**whole, "σ²": value}, run.parameters)


def test_a_result_cannot_stand_in_place_of_the_parameters_of_its_run():
    (run,) = EXPERIMENTS["figure2"].configurations("quick")
    forged = {**made_up(run, np.random.default_rng(0)), "curve": 3}
    with pytest.raises(ValueError, match=r"^result: curve: expected no such part, because it is a parameter"):
        TASKS.task_of(run).check(forged, run.parameters)
