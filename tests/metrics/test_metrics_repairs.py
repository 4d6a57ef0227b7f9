"""Inputs on which the reference fails, and the results here."""

import math

import numpy as np
import pytest

from drkm import metrics
from metrics.golden_cases import edge, golden

CONSTANT = ["all_const_zero", "all_const_two", "all_const_inexact"]


@pytest.mark.parametrize("name", CONSTANT)
def test_constant_codes_score_nothing(name):
    case = edge(name)
    z, y, test_z, test_y = case.halves
    assert float(metrics.irs(case.codes, case.factors)) == 0
    assert float(metrics.mig(case.codes, case.factors)) == 0
    assert float(metrics.sap(z, y, test_z, test_y)) == 0
    assert float(metrics.sap(z, y, continuous=True)) == 0
    assert float(metrics.modularity(z, y)) == 0
    assert float(metrics.factor_vae(case.codes, case.factors, threshold=0.0)) == 0
    assert float(metrics.explicitness(z, y, test_z, test_y)) == 0.5
    assert float(metrics.dci(z, y, test_z, test_y)) == pytest.approx(0, abs=1e-12)
    result = metrics.unsupervised(case.codes)
    assert (result.total_correlation, result.wasserstein_correlation_norm) == (0, 0)


def test_a_code_constant_up_to_rounding_does_not_change_irs():
    case = edge("const_dim_inexact")
    varying = np.ptp(case.codes, axis=0) > 0
    assert float(metrics.irs(case.codes, case.factors)) == pytest.approx(
        float(metrics.irs(case.codes[:, varying], case.factors)), rel=1e-12
    )


def test_constant_codes_do_not_change_total_correlation():
    case = edge("const_dims_exact")
    varying = np.ptp(case.codes, axis=0) > 0
    whole, part = metrics.unsupervised(case.codes), metrics.unsupervised(case.codes[:, varying])
    assert whole.total_correlation == pytest.approx(part.total_correlation, rel=1e-9)


def test_explicitness_takes_constant_codes():
    assert float(metrics.explicitness(*edge("const_dims_exact").halves)) == pytest.approx(1.0)


def test_explicitness_leaves_out_a_class_that_is_missing_from_the_test_rows():
    z, y, test_z, test_y = golden("p01_identity_small").halves
    kept = test_y[:, 0] != 2
    assert float(metrics.explicitness(z, y, test_z[kept], test_y[kept])) == pytest.approx(1.0)


def test_one_constant_code_does_not_spoil_factor_vae():
    case = golden("p01_identity_small")
    codes = np.concatenate([case.codes, np.full((len(case.codes), 1), 0.1)], axis=1)
    assert float(metrics.factor_vae(codes, case.factors, threshold=0.0)) == pytest.approx(1.0)


def test_a_duplicated_code_has_infinite_total_correlation_and_a_real_wasserstein_correlation():
    case = edge("duplicate_dim")
    result = metrics.unsupervised(case.codes)
    assert result.total_correlation == math.inf
    # To 50 digits; the reference's matrix root of a singular matrix is right to 3e-8 only.
    assert result.wasserstein_correlation == pytest.approx(0.80399255019189941, rel=1e-12)


def test_one_factor_leaves_disentanglement_and_modularity_undefined():
    z, y, test_z, test_y = edge("one_factor").halves
    result = metrics.dci(z, y, test_z, test_y)
    assert math.isnan(float(result))
    assert result.completeness == pytest.approx(1.0)
    assert math.isnan(float(metrics.modularity(z, y)))


def test_one_code_leaves_completeness_undefined():
    result = metrics.dci(*edge("one_code").halves)
    assert math.isnan(result.completeness)
    assert float(result) == pytest.approx(0, abs=1e-9)


def test_the_fast_learner_sees_codes_of_any_scale():
    case = edge("tiny_scale")
    assert float(metrics.dci(*case.halves)) > 0.99


def test_standardised_codes_escape_the_pruning_of_factor_vae():
    case = golden("p01_identity_small")
    small = case.codes / 100
    assert float(metrics.factor_vae(small, case.factors)) == 0
    assert float(metrics.factor_vae(small, case.factors, standardize=True)) == pytest.approx(1.0)


def test_standardised_codes_score_the_same_at_any_scale():
    case = golden("p01_identity_small")
    z, y, test_z, test_y = case.halves
    large = metrics.sap(z, y, test_z, test_y, standardize=True)
    small = metrics.sap(z / 64, y, test_z / 64, test_y, standardize=True)
    assert float(large) == float(small)
    tiny = case.codes / 2**13
    assert float(metrics.beta_vae(tiny, case.factors)) < 0.5
    assert float(metrics.beta_vae(tiny, case.factors, standardize=True)) == pytest.approx(1.0)


def test_a_class_not_seen_in_training_is_counted_as_wrong():
    z, y, test_z, test_y = golden("p01_identity_small").halves
    changed = test_y.copy()
    changed[:, 0] = 77
    assert metrics.sap(z, y, test_z, changed).matrix[:, 0].tolist() == [0, 0, 0]
    assert metrics.dci(z, y, test_z, changed).informativeness_test == pytest.approx(2 / 3)
