"""The experiment on depth: its draws, its choice of widths, its filters and its rule."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score

from drkm.experiments.disentanglement import _contests as contests
from drkm.experiments.disentanglement import _filters as filters
from drkm.experiments.disentanglement import _models as models
from drkm.experiments.disentanglement import _tasks as tasks
from drkm.experiments.disentanglement import _tuning as tuning
from drkm.experiments.disentanglement import depth
from drkm.experiments.registry import EXPERIMENTS, TASKS
from drkm.experiments.section import Verdict
from drkm.experiments.study.scales import FOUR
from drkm.kernels import RBF, Linear
from drkm.runs.configuration import Configuration, Results

SHARED = {"dataset": "sprites", "n": 40, "evaluation": 200, "family": "drkm"}
STUDY = EXPERIMENTS["depth"]


def rows_of(score, datasets=FOUR):
    """Return rows of an experiment at the scale "medium": (model, dataset, name of the score) → mean."""
    rng = np.random.default_rng(0)
    return [
        {
            "model": model,
            "dataset": dataset,
            "seed": seed,
            **{name: score(model, dataset, name) + 0.01 * rng.standard_normal() for name in contests.JUDGED},
        }
        for model in contests.MODELS
        for dataset in datasets
        for seed in range(depth.DRAWS)
    ]


def claims_of(rows):
    first, *others = STUDY.claims(rows, STUDY.sizes("medium"))
    return first, dict(zip(contests.CONTESTS, others, strict=True))


def test_every_model_has_ten_codes_as_many_widths_and_the_same_draws():
    runs = STUDY.configurations("medium")
    assert len(runs) == 9 * 4 * 10
    assert {tuple(run.parameters["widths"]) for run in runs} == {depth.WIDTHS}
    for layers, _ in contests.MODELS.values():
        assert models.Codes([np.zeros((3, size)) for size in layers], 0, 0).scored.shape == (3, 10)
    assert {run.seed for run in runs} == set(range(10))
    assert len({run.canonical() for run in runs}) == len(runs)


def test_settings_are_chosen_on_draws_that_are_never_judged(monkeypatch):
    chosen = [{tuning.CHOOSING + 2 * seed + k for k in range(2)} for seed in range(100)]
    assert len(set.union(*chosen)) == 200
    asked = []
    dataset = tuning.data.load("sprites")
    sample = dataset.sample
    monkeypatch.setattr(
        dataset, "sample", lambda n, random_state: asked.append(random_state) or sample(n, random_state)
    )
    tuning.tuned({**SHARED, "layers": [10], "widths": [1.0]}, 3)
    assert asked == [tasks.COMMON_DRAW, 20006, 20007, 3]


def test_the_width_of_the_best_agreement_is_taken_and_no_factor_is_seen(monkeypatch):
    agreements = iter([0.2, 0.5, 0.4])
    monkeypatch.setattr(tuning, "agreement", lambda first, second: next(agreements))
    parameters = {**SHARED, "layers": [10], "widths": [0.5, 2.0, 4.0]}
    found = tuning.tuned(parameters, 0)
    assert (found["width"], found["agreements"]) == (2.0, [0.2, 0.5, 0.4])
    alone = tasks.disentangle({**SHARED, "layers": [10], "width": 2.0}, 0)
    assert found["mig"] == pytest.approx(alone["mig"], rel=1e-9)
    STUDY.tasks["tuned"].check(found, parameters)


@pytest.mark.parametrize("model", [name for name, (layers, _) in contests.MODELS.items() if len(layers) > 1])
def test_deep_models_are_run_as_the_rules_say(model):
    (run, *_) = [run for run, row in _by_model() if row == model]
    small = {**run.parameters, "dataset": "sprites", "n": 60, "evaluation": 150}
    images = tasks.draw("sprites", 0, 60, 150)
    rows = models.inputs_of(small, images.train)
    made = models.default_model({**small, "width": 2.0}, rows)
    first, second = made.kernel[:2]
    if model == contests.LINEAR:
        assert isinstance(first, Linear)
        assert second == RBF(2.0 * 2 * 5 / 60)
    else:
        assert first.sigma2 == pytest.approx(2 * models.default_model({**small, "width": 1.0}, rows).kernel[0].sigma2)
        assert second.sigma2 == pytest.approx((4 if "centred" in model else 1) * 2 * made.n_components[0] / 60)
    assert made.eta == (1.0, *[3.0] * (len(made.n_components) - 1)) if "centred" in model else made.eta == "auto"
    assert rows.shape[1] == (9 * 64 if "filters" in model else 64 * 64)


def _by_model():
    for group in STUDY.groups:
        for run in group.configurations(STUDY.sizes("medium")):
            yield run, group.tags["model"]


def test_a_linear_first_layer_is_scored_by_the_layer_above():
    found = TASKS.perform(_small(contests.LINEAR))
    assert found["bandwidths"][0] is None
    assert 0 < found["accuracy"] <= 1
    assert found["feasibility"] < 1e-8


def _small(model):
    (run, *_) = [run for run, name in _by_model() if name == model]
    return Configuration(
        "tuned", {**run.parameters, "dataset": "sprites", "n": 40, "evaluation": 150, "widths": [1.0]}, 0
    )


def test_filters_see_orientation_and_not_an_even_grey():
    grey = np.full((2, 64, 64), 100, np.uint8)
    grey[1] = 200
    inner = filters.filtered(grey).reshape(2, 9, 8, 8)[:, :, 2:6, 2:6]
    np.testing.assert_allclose(inner[:, 0], (grey / 255)[:, :4, :4], atol=1e-6)
    np.testing.assert_allclose(inner[:, 1:], 0, atol=1e-5)
    waves = np.zeros((2, 64, 64), np.uint8)
    waves[0] = np.rint(127 + 100 * np.cos(2 * np.pi * np.arange(64) / 8))
    waves[1] = waves[0].T
    answers = filters.filtered(waves).reshape(2, 9, 64)[:, 1:].mean(axis=2)
    # The second wavelength is 8 pixels; orientations are in steps of 45 degrees from the horizontal.
    assert answers.argmax(axis=1).tolist() == [4, 6]


def test_colours_are_filtered_each_alone():
    images = np.random.default_rng(0).integers(0, 256, (3, 64, 64, 3)).astype(np.uint8)
    found = filters.filtered(images).reshape(3, 3, -1)
    for channel in range(3):
        np.testing.assert_allclose(found[:, channel], filters.filtered(images[..., channel]), atol=1e-6)


def test_the_accuracy_of_a_linear_classifier_is_high_for_factors_and_at_chance_for_noise():
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 4, (2000, 2))
    corners = np.eye(4)[factors].reshape(2000, 8)
    assert tuning.linear_accuracy(corners, factors) == 1.0
    assert tuning.linear_accuracy(rng.standard_normal((2000, 10)), factors) == pytest.approx(0.25, abs=0.05)
    guess = accuracy_score(factors[1000:, 0], np.full(1000, np.bincount(factors[:1000, 0]).argmax()))
    assert tuning.linear_accuracy(np.zeros((2000, 10)), factors[:, :1]) == pytest.approx(guess, abs=0.05)


def test_depth_pays_where_a_candidate_is_ahead_in_a_score_and_behind_in_none():
    def one_win(model, dataset, score):
        return 0.6 if (model, dataset, score) == (contests.GROWING, "smallnorb", "mig") else 0.5

    somewhere, each = claims_of(rows_of(one_win))
    winner = contests.Contest(contests.GROWING, contests.PIXELS)
    assert somewhere.verdict is Verdict.HELD
    assert "centred (5, 10): MIG on SmallNORB +0.099 [+0.0" in somewhere.measured
    assert [found.verdict is Verdict.HELD for found in each.values()] == [contest == winner for contest in each]

    def paid_for(model, dataset, score):
        worse = (model, dataset, score) == (contests.GROWING, "smallnorb", "sap")
        return 0.4 if worse else one_win(model, dataset, score)

    somewhere, each = claims_of(rows_of(paid_for))
    assert somewhere.verdict is each[winner].verdict is Verdict.FAILED
    assert each[winner].measured == "ahead in 1, behind in 1 of 16 combinations of dataset and score; pays nowhere"


def test_a_candidate_has_to_be_ahead_of_the_better_kernel_pca_of_its_inputs():
    def centred_is_best(model, dataset, score):
        return {contests.CENTRED: 0.7, contests.DEFAULTS: 0.6}.get(model, 0.5)

    somewhere, _ = claims_of(rows_of(centred_is_best))
    assert somewhere.verdict is Verdict.FAILED
    rows = rows_of(centred_is_best)
    assert {one.rival for one in contests.outcomes(rows, contests.OF_DEPTH[0])} == {contests.CENTRED}

    def filters_win(model, dataset, score):
        return 0.7 if "filters" in model else 0.5

    somewhere, each = claims_of(rows_of(filters_win))
    assert somewhere.verdict is Verdict.FAILED
    assert {each[contest].verdict for contest in contests.OF_FILTERS} == {Verdict.HELD}


def test_what_one_interval_shows_is_not_enough_among_many():
    # Ten differences whose mean is three standard errors from 0: outside a single interval, inside one of 112.
    steps = np.linspace(-1, 1, depth.DRAWS)
    steps = 3 / depth.DRAWS**0.5 + steps / steps.std(ddof=1)
    rows = rows_of(lambda *where: 0.5)
    for row in rows:
        row.update(dict.fromkeys(contests.JUDGED, steps[row["seed"]] if row["model"] == contests.DEFAULTS else 0.0))
    found = list(contests.outcomes(rows, contests.OF_DEPTH[0]))
    assert all(one.own.low > 0 > one.joint.low for one in found)
    assert {one.verdict for one in found} == {Verdict.UNDECIDED}
    for row in rows:
        row.update({name: -row[name] for name in contests.JUDGED})
    assert {one.verdict for one in contests.outcomes(rows, contests.OF_DEPTH[0])} == {Verdict.FAILED}


def test_without_all_four_datasets_nothing_is_denied():
    somewhere, each = claims_of(rows_of(lambda *where: 0.5, FOUR[:3]))
    assert {somewhere.verdict, *(found.verdict for found in each.values())} == {Verdict.UNDECIDED}
    section = STUDY.section(Results(), "medium")
    assert {claim.verdict for claim in section.claims} == {Verdict.UNDECIDED}


def test_the_rules_in_the_documentation_are_those_of_the_code():
    page = (Path(__file__).parents[2] / "docs" / "studies.md").read_text("utf-8").partition("## Where depth pays")[2]
    text = " ".join(page.split())
    assert f"all {contests.COMPARISONS} comparisons" in text
    assert f"draws {tuning.CHOOSING} + 2k" in text
    assert f"on {tasks.COMMON} common images" in text
    stacks = {tuple(map(int, found.split(", "))) for found in re.findall(r"\| \(([\d, ]+)\) \|", page)}
    assert stacks == {layers for layers, _ in contests.MODELS.values()}
