"""Results in a store whose checksums are right and whose fields are not: the report refuses them with one sentence."""

import json
import math

import numpy as np
import pytest

from drkm.experiments.registry import EXPERIMENTS, TASKS
from drkm.experiments.report.page import page
from drkm.experiments.report.writing import gather
from drkm.runs._rows import SEAL
from drkm.runs.attempt import Attempt, as_json
from drkm.runs.shapes import COUNT, POSITIVE, WORDS, Columns, Named, Several, Value
from drkm.runs.store import Store
from fuzz.forgeries import forged_objects

pytest.importorskip("matplotlib").use("Agg")


def example(shape, rng):
    """Return something of a shape."""
    match shape:
        case Several():
            return [example(shape.of, rng) for _ in range(shape.length or 3)]
        case Named():
            return [{shape.key: name, **example(shape.fields, rng)} for name in shape.names]
        case Columns():
            return example({**dict.fromkeys(shape.names, Several(shape.of)), **shape.others}, rng)
        case Value():
            samples = [0.1 + rng.random(), int(rng.integers(1, 9)), "text"]
            return next(one for one in samples if shape.holds(one) and (shape is not WORDS or one == "text"))
    return {name: example(of, rng) for name, of in shape.items()}


@pytest.fixture(params=EXPERIMENTS)
def written(request, tmp_path):
    """Return the name of an experiment and a store with results of all its runs."""
    rng, path = np.random.default_rng(0), tmp_path / "runs.sqlite"
    with Store(path, TASKS) as store:
        for run in dict.fromkeys(EXPERIMENTS[request.param].configurations("quick")):
            known = TASKS.identify(run)
            assert store.claim(known, "me")
            result = as_json(example(TASKS.task_of(run).result, rng))
            assert store.finish(known.key, "me", Attempt("done", result, seconds=1.0, environment='{"device":"cpu"}'))
    return request.param, path


def check(name, path, count, seed, show=lambda report: None):
    """Forge results one after the other and show them; return how many were refused, with one sentence each."""
    refused = 0
    show(gather(path, "quick", [name]))
    with Store(path, TASKS) as store:
        rows = store._all("SELECT key, configuration, result FROM runs")
        for number in range(count):
            key, configuration, result = rows[number % len(rows)]
            (forged,) = forged_objects(json.loads(result), 1, seed + number)
            put(store, key, json.dumps(forged.header))
            try:
                show(gather(path, "quick", [name]))
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
    assert check(*written, 100, seed=1000 * part, show=page) > 50


@pytest.mark.parametrize("value", [None, True, "0.5", [0.5], {}, math.nan, math.inf, 10**400, -1, 0, 1e31, 1e-31])
def test_what_is_no_positive_number_is_refused(value):
    from drkm.runs.shapes import misfit

    assert misfit({"mse": value}, {"mse": POSITIVE}).startswith("expected a number from 1e-30 to 1e+30 as mse, got ")
    assert misfit({"mse": 0.5}, {"mse": POSITIVE}) is None
    assert misfit({"mse": 0.5}, {"mse": COUNT}) == "expected a whole number as mse, got 0.5"


def test_a_result_cannot_stand_in_place_of_the_parameters_of_its_run():
    (run,) = EXPERIMENTS["figure2"].configurations("quick")
    task = TASKS.task_of(run)
    whole = example(task.result, np.random.default_rng(0))
    assert task.misfit(whole, run.parameters) is None
    assert task.misfit({**whole, "curve": 3}, run.parameters) == "expected no field 'curve', a parameter of the run"
