"""The rules of verdicts, on made-up results with known answers."""

import numpy as np
import pytest
from scipy.stats import t, ttest_ind, ttest_rel

from drkm.experiments.disentanglement import sample_efficiency
from drkm.experiments.registry import EXPERIMENTS
from drkm.experiments.section import Verdict
from drkm.experiments.study.claims import ahead
from drkm.experiments.study.rows import at_common_points
from drkm.experiments.study.scales import FOUR, SIZES
from drkm.experiments.study.verdicts import (
    TIE,
    Difference,
    alike,
    balanced,
    difference,
    everywhere,
    greater,
    majority,
    most,
    not_most,
    to_halve,
    together,
    welch,
)
from drkm.runs.configuration import Results

HELD, FAILED, UNDECIDED = Verdict.HELD, Verdict.FAILED, Verdict.UNDECIDED


def rows_of(name, score, scale="medium"):
    """Rows of a study with one function of the run's parameters for IRS and MIG; chance is 0.3 and 0."""
    rng = np.random.default_rng(0)
    study = EXPERIMENTS[name]

    def scores(parameters):
        return {
            "irs": score(parameters) + 0.01 * rng.standard_normal(),
            "irs_chance": 0.3,
            "mig": score(parameters) / 10 + 0.001 * rng.standard_normal(),
            "mig_chance": 0.0,
            "sap": 0.01 + 0.001 * rng.standard_normal(),
            "sap_chance": 0.005,
        }

    def result(parameters):
        again = {"all_images": scores({**parameters, "images": "all"})} if "all_images" in parameters else {}
        return {**scores(parameters), **again}

    runs = study.configurations(scale)
    return study.rows(Results((run, result(run.parameters), 1.0) for run in runs), scale)


def claims_of(name, rows, scale="medium"):
    """The claims of a study about these rows."""
    return list(EXPERIMENTS[name].claims(rows, EXPERIMENTS[name].sizes(scale)))


def verdict(claims, *words):
    found = [claim for claim in claims if all(word in claim.text for word in words)]
    assert len(found) == 1, [claim.text for claim in claims]
    return found[0].verdict


def test_the_interval_is_that_of_welch():
    rng = np.random.default_rng(0)
    first, second = rng.normal(1, 1, 5), rng.normal(0, 3, 9)
    interval = ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    found = welch(first, second)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def _row(seed, irs, **more):
    return {"dataset": "cars3d", "seed": seed, "irs": irs, **more}


def test_runs_of_one_draw_are_compared_in_pairs():
    rng = np.random.default_rng(0)
    level = 10 * rng.standard_normal(6)
    first, second = level + 1 + 0.1 * rng.standard_normal(6), level + 0.1 * rng.standard_normal(6)
    interval = ttest_rel(first, second).confidence_interval(0.95)
    rows = [[_row(k, value) for k, value in enumerate(values)] for values in (first, second)]
    found = difference(*rows, "irs")
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.draws == 6
    # Without pairs, the variation between draws would hide the difference.
    assert greater(found) is HELD
    assert greater(welch(first, second)) is UNDECIDED


def test_runs_that_share_a_draw_count_once():
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((2, 4))
    few = [[_row(k, value) for k, value in enumerate(values)] for values in draws]
    many = [[{**row, "gamma": gamma, "n": n} for gamma in (1, 5) for n in (50, 100) for row in rows] for rows in few]
    assert difference(*many, "irs") == difference(*few, "irs")
    fixed = [[_row(seed, value, draw=0) for seed, value in enumerate(values)] for values in draws]
    assert difference(*fixed, "irs") is None


def test_groups_without_common_draws_are_compared_by_welch():
    first, second = [_row(k, 1 + k % 2) for k in range(4)], [_row(10 + k, k % 3) for k in range(5)]
    assert difference(first, second, "irs") == welch([1, 2, 1, 2], [0, 1, 2, 0, 1])


@pytest.mark.parametrize(("draws", "more"), [(2, 1), (3, 2), (5, 8), (10, 23)])
def test_how_many_more_draws_halve_an_interval(draws, more):
    def width(n):
        return t.ppf(0.975, n - 1) / n**0.5

    assert to_halve(draws) == more
    assert width(draws + more) <= width(draws) / 2 < width(draws + more - 1)


def test_a_verdict_says_how_many_draws_it_is_based_on():
    claims = claims_of("training_points", rows_of("training_points", lambda p: 0.5))
    ahead = next(claim for claim in claims if "ahead of the β-VAE in IRS" in claim.text)
    assert ahead.why.endswith("Based on 5 training draws; 8 more would halve the interval.")
    wide = next(claim for claim in claims if "varies widely" in claim.text)
    assert wide.why.endswith("Based on 5 seeds.")


def test_one_value_has_no_interval_and_equal_values_a_point():
    assert welch([1.0], [0.0, 0.1]) is None
    assert greater(None) is UNDECIDED
    assert greater(welch([1.0, 1.0], [0.5, 0.5])) is HELD


@pytest.mark.parametrize(
    ("first", "expected", "similar"),
    [((1.0, 1.1, 0.9), HELD, FAILED), ((-1.0, -1.1, -0.9), FAILED, FAILED), ((0.0, 0.9, -0.9), UNDECIDED, UNDECIDED)],
)
def test_a_verdict_needs_the_whole_interval_on_one_side(first, expected, similar):
    found = welch(first, (0.0, 0.1, -0.1))
    assert greater(found) is expected
    assert alike(found, 0.2) is similar


def test_a_model_that_is_surely_less_than_a_hundredth_ahead_is_not_ahead():
    rows = [[_row(k, value) for k, value in enumerate(values)] for values in ([0.501, 0.602, 0.703], [0.5, 0.6, 0.7])]
    found = difference(*rows, "irs")
    assert 0 < found.estimate < found.high < TIE
    assert greater(found) is FAILED
    assert ahead(*rows, "irs").verdict is FAILED
    assert ahead(*rows, "irs", tie=0.0).verdict is UNDECIDED
    assert ahead(*reversed(rows), "irs", tie=0.0).verdict is UNDECIDED
    wide = Difference(0.009, -0.001, 0.019, draws=3)
    assert greater(wide) is greater(wide, tie=0.0) is UNDECIDED


def test_similar_means_within_the_margin():
    assert alike(welch([0.01, 0.011, 0.009], [0.0, 0.001, -0.001]), 0.05) is HELD


def test_claims_about_all_fail_with_one_and_hold_with_all():
    assert together([HELD, FAILED, UNDECIDED]) is FAILED
    assert together([HELD, HELD]) is HELD
    assert together([HELD, UNDECIDED]) is UNDECIDED
    assert together([]) is UNDECIDED


def test_a_majority_is_more_than_half_of_all_cases():
    assert majority(3, 1, 5) is HELD
    assert majority(2, 2, 5) is majority(2, 1, 4) is UNDECIDED
    # If half of the cases fail, a majority is impossible.
    assert majority(2, 2, 4) is majority(1, 3, 4) is FAILED
    assert majority(0, 0, 0) is UNDECIDED


def test_other_ways_to_count():
    assert [not_most(yes, 0, 4) for yes in (2, 3)] == [HELD, FAILED]
    assert [most(yes, 4 - yes, 4) for yes in (2, 3)] == [FAILED, HELD]
    assert [balanced(yes, 3, 9) for yes in (6, 7)] == [HELD, FAILED]
    assert [everywhere(yes, 4 - yes, 4) for yes in (2, 3, 4)] == [FAILED, UNDECIDED, HELD]
    assert {count(0, 0, 0) for count in (not_most, most, balanced, everywhere)} == {UNDECIDED}


def test_ahead_of_the_beta_vae_on_cars3d():
    claims = claims_of(
        "training_points", rows_of("training_points", lambda p: 0.5 if p["family"] == "beta-vae" else 0.6)
    )
    for name in ("as published", "drkm defaults"):
        assert verdict(claims, "ahead of the β-VAE in IRS", f"({name}).") is HELD
        assert verdict(claims, "ahead of the β-VAE in IRS", f"({name})", "above chance") is HELD
        assert verdict(claims, "considerably better in IRS", f"({name}).") is FAILED
        assert verdict(claims, "MIG of both is similar", name) is HELD
        assert verdict(claims, "about as well", name) is FAILED


def test_a_score_that_is_all_chance_holds_as_published_only():
    rows = rows_of("training_points", lambda p: 0.5)
    for row in rows:
        if row["family"] == "paper":
            row["irs"] += 0.2
            row["irs_chance"] += 0.25
            row["irs_above"] = row["irs"] - row["irs_chance"]
    claims = claims_of("training_points", rows)
    assert verdict(claims, "ahead of the β-VAE in IRS", "(as published).") is HELD
    assert verdict(claims, "ahead of the β-VAE in IRS", "(as published)", "above chance") is FAILED


def test_claims_about_a_dataset_cannot_be_judged_on_another():
    rows = [row for row in rows_of("training_points", lambda p: 0.5) if row["dataset"] == "dsprites"]
    claims = [*claims_of("training_points", rows), *claims_of("hyperparameters", rows)]
    elsewhere = [claim for claim in claims if "On Cars3D" in claim.text or "On SmallNORB" in claim.text]
    assert len(elsewhere) >= 10
    assert {claim.verdict for claim in elsewhere} == {UNDECIDED}


def test_influence_of_gamma_and_beta():
    steady = claims_of("hyperparameters", rows_of("hyperparameters", lambda p: 0.5 + 0.05 * p.get("beta", 0)))
    assert verdict(steady, "On SmallNORB γ has no", "(as published).") is HELD
    assert verdict(steady, "rises with β.") is HELD
    assert verdict(steady, "drops at β = 5 and 6.") is FAILED
    assert verdict(steady, "less sensitive to γ") is HELD
    moved = claims_of("hyperparameters", rows_of("hyperparameters", lambda p: 0.5 + 0.05 * p.get("gamma", 0)))
    assert verdict(moved, "On SmallNORB γ has no", "(as published).") is FAILED
    assert verdict(moved, "less sensitive to γ") is FAILED


def test_three_layers_with_double_mig():
    claims = claims_of("layers", rows_of("layers", lambda p: 0.8 if len(p["layers"]) == 3 else 0.4))
    for name in ("as published", "drkm defaults"):
        assert verdict(claims, "double the MIG", name) is HELD
        assert verdict(claims, "hardly changes SAP", name) is HELD
        assert verdict(claims, "third layer does not", name) is FAILED
        assert verdict(claims, "most consistent", name) is FAILED


def test_two_layers_best():
    claims = claims_of("layers", rows_of("layers", lambda p: 0.6 if len(p["layers"]) == 2 else 0.4))
    assert verdict(claims, "double the MIG", "as published") is FAILED
    assert verdict(claims, "most consistent", "as published") is HELD
    assert verdict(claims, "third layer does not", "as published") is HELD
    assert verdict(claims, "better than 1 in MIG", "as published") is HELD


def test_a_poor_choice_of_components_is_seen():
    poor = rows_of("components", lambda p: 0.4 if p["layers"] == [2, 2, 6] else 0.5)
    assert verdict(claims_of("components", poor), "never significantly poorer", "drkm") is FAILED
    good = rows_of("components", lambda p: 0.6 if p["layers"] == [2, 2, 6] else 0.5)
    claims = claims_of("components", good)
    assert verdict(claims, "never significantly poorer", "drkm") is HELD
    assert verdict(claims, "No choice is best", "drkm") is FAILED
    half = [row for row in good if row["dataset"] in FOUR[:2]]
    assert verdict(claims_of("components", half), "never significantly poorer", "drkm") is UNDECIDED


def test_table_2_is_judged_against_the_published_numbers_at_their_size_only():
    for scale, expected in (("paper", HELD), ("medium", HELD), ("quick", UNDECIDED)):
        claims = claims_of("table2", rows_of("table2", lambda p: 0.84, scale), scale)
        assert verdict(claims, "IRS of the random start", "unseen images") is expected


def test_table_2_says_how_far_a_number_is_from_the_published_one_and_why():
    # The published standard deviation of the random start is 0.044, that of ours 0.01 or so.
    claims = claims_of("table2", rows_of("table2", lambda p: 0.74 if p.get("images") else 0.76))
    far, near = (
        next(claim for claim in claims if claim.text.startswith(f"IRS of the random start, σ² = 50 on {where}"))
        for where in ("images drawn from all", "unseen images")
    )
    assert (far.verdict, near.verdict) == (FAILED, HELD)
    assert "2.4 standard deviations apart; likely reason: σ² = 50" in far.measured
    assert near.measured.endswith("1.9 standard deviations apart")


def test_where_the_beta_vae_catches_up():
    def table(rows):
        return sample_efficiency.CATCHING_UP(rows, SIZES["medium"])[0].rows

    rows = rows_of("sample_efficiency", lambda p: 0.5 if p["family"] == "drkm" else 0.34 + p["n"] / 1000)
    assert {line["IRS above chance"] for line in table(rows)} == {"N = 200"}
    assert [claim.verdict for claim in claims_of("sample_efficiency", rows)[:2]] == [HELD, HELD]
    never = rows_of("sample_efficiency", lambda p: 0.5 if p["family"] == "drkm" else 0.3)
    assert {line["MIG"] for line in table(never)} == {"not by N = 400"}


def test_ahead_on_cars3d_counts_draws_on_which_both_scores_are_better():
    def score(parameters):
        return 0.6 if parameters.get("layers") == [10, 5] and parameters["family"] == "drkm" else 0.5

    rows = rows_of("cars3d", score)
    claims = claims_of("cars3d", rows)
    assert verdict(claims, "defaults", "kernel PCA, median") is HELD
    assert claims[0].measured == "in both on 10 of 10 draws"
    for row in rows:
        if row["model"] == "two layers, defaults":
            row["mig"] = 0.0
    assert verdict(claims_of("cars3d", rows), "defaults", "kernel PCA, median") is FAILED


def test_models_are_compared_where_both_were_run():
    def row(family, n, irs):
        return {"dataset": "cars3d", "family": family, "n": n, "irs": irs, "gamma": 1.0, "beta": 4.0}

    rows = [row("paper", 50, 0.1), row("paper", 400, 0.5), row("beta-vae", 400, 0.4)]
    assert at_common_points(rows, "paper", "beta-vae") == rows[1:]
    assert at_common_points(rows, "paper") == rows
    assert at_common_points(rows, "drkm", "beta-vae") == []
