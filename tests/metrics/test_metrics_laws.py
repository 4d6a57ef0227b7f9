"""Invariances that follow from the definitions, on random codes and factors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drkm import metrics

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=15, deadline=None)


def draw(seed, n=300, m=4, sizes=(3, 5, 8)):
    """Codes that depend on the factors, with noise."""
    rng = np.random.default_rng(seed)
    factors = np.stack([rng.integers(size, size=n) for size in sizes], axis=1)
    factors[: max(sizes)] = np.stack([np.arange(max(sizes)) % size for size in sizes], axis=1)
    mixing = rng.normal(size=(len(sizes), m)) * rng.integers(2, size=(len(sizes), m))
    return rng.normal(size=(n, m)) + factors @ mixing, factors, rng


SUPERVISED = [metrics.irs, metrics.mig, metrics.modularity]


@pytest.mark.parametrize("function", SUPERVISED, ids=lambda f: f.__name__)
@few
@given(seeds)
def test_order_of_codes_rows_and_factors_does_not_matter(function, seed):
    z, y, rng = draw(seed)
    rows, columns, names = rng.permutation(len(z)), rng.permutation(z.shape[1]), rng.permutation(y.shape[1])
    other = function(z[rows][:, columns], y[rows][:, names])
    assert float(other) == pytest.approx(float(function(z, y)), rel=1e-9)


@settings(max_examples=4, deadline=None)
@given(seeds)
def test_order_of_codes_does_not_matter_to_trained_metrics(seed):
    z, y, rng = draw(seed)
    columns = rng.permutation(z.shape[1])
    assert float(metrics.sap(z[:, columns], y)) == pytest.approx(float(metrics.sap(z, y)), rel=1e-12)
    # Trees take the first of equally good splits: its credit is shared, but the branches below it may differ.
    assert float(metrics.dci(z[:, columns], y)) == pytest.approx(float(metrics.dci(z, y)), abs=0.02)


@pytest.mark.parametrize("function", [metrics.mig, metrics.modularity])
@few
@given(seeds)
def test_names_of_factor_values_do_not_matter_to_information(function, seed):
    z, y, rng = draw(seed)
    renamed = np.stack([rng.permutation(100)[y[:, j]] - 50 for j in range(y.shape[1])], axis=1)
    assert float(function(z, renamed)) == pytest.approx(float(function(z, y)), rel=1e-12)


@few
@given(seeds)
def test_names_of_factor_values_do_not_matter_to_irs_without_bins(seed):
    z, y, rng = draw(seed)
    renamed = np.stack([rng.permutation(100)[y[:, j]] for j in range(y.shape[1])], axis=1)
    assert float(metrics.irs(z, renamed, bins=None)) == pytest.approx(float(metrics.irs(z, y, bins=None)))


@few
@given(seeds)
def test_affine_maps_leave_the_irs_matrix_and_the_standardised_score(seed):
    z, y, rng = draw(seed)
    moved = z * rng.uniform(0.1, 10, size=z.shape[1]) + rng.normal(size=z.shape[1])
    before, after = metrics.irs(z, y, standardize=True), metrics.irs(moved, y, standardize=True)
    np.testing.assert_allclose(after.matrix, before.matrix, atol=1e-10)
    assert float(after) == pytest.approx(float(before), rel=1e-9)
    np.testing.assert_allclose(metrics.irs(moved, y).matrix, before.matrix, atol=1e-10)


@settings(max_examples=4, deadline=None)
@given(seeds)
def test_monotone_maps_leave_the_fast_learner_where_it_was(seed):
    z, y, _ = draw(seed)
    moved = np.arctan(z / 4)
    before = metrics.dci(z, y, z, y).importances
    np.testing.assert_allclose(metrics.dci(moved, y, moved, y).importances, before, atol=1e-6)


@settings(max_examples=6, deadline=None)
@given(seeds)
def test_scores_stay_within_their_range(seed):
    z, y, _ = draw(seed)
    for function in (metrics.mig, metrics.sap, metrics.modularity, metrics.dci):
        assert -1e-12 <= float(function(z, y)) <= 1 + 1e-12
    assert float(metrics.irs(z, y)) <= 1
    assert 0 <= float(metrics.factor_vae(z, y, n_train=500, n_eval=200)) <= 1
    assert metrics.unsupervised(z).total_correlation >= 0


@few
@given(seeds)
def test_mutual_information_is_that_of_scikit_learn(seed):
    from sklearn.metrics import mutual_info_score

    z, y, _ = draw(seed)
    result, binned = metrics.mig(z, y), metrics.discretize(z)
    expected = [[mutual_info_score(y[:, j], binned[:, i]) for j in range(y.shape[1])] for i in range(4)]
    np.testing.assert_allclose(result.mutual_information, expected, rtol=1e-9, atol=1e-12)


@settings(max_examples=8, deadline=None)
@given(seeds, st.floats(-2, 2), st.floats(-5, 5))
def test_support_vector_machines_are_at_the_optimum_of_scikit_learn(seed, log_scale, offset):
    from sklearn.svm import LinearSVC

    from drkm.metrics._svm1d import fit_one_against_rest

    z, y, _ = draw(seed, m=1, sizes=(2, 4))
    z = 10**log_scale * z + offset
    weights, intercepts = fit_one_against_rest(z, y, (2, 4))
    got = np.stack([weights[0], intercepts[0]])
    model = [LinearSVC(C=0.01, class_weight="balanced", tol=1e-10, max_iter=10000).fit(z, y[:, j]) for j in (0, 1)]
    expected = np.stack(
        [
            np.concatenate([m.coef_[:, 0] for m in model]),
            np.concatenate([np.atleast_1d(m.intercept_) for m in model]),
        ]
    )
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_a_grid_in_any_order_gives_the_same_score():
    sizes = (3, 4, 5)
    grid = np.stack(np.unravel_index(np.arange(60), sizes), axis=1)
    rng = np.random.default_rng(0)
    z = grid @ rng.normal(size=(3, 4)) + rng.normal(size=(60, 4))
    order = rng.permutation(60)
    for function in (metrics.factor_vae, metrics.beta_vae):
        options = {"factor_sizes": sizes, "n_train": 500, "n_eval": 500}
        expected = float(function(z, None, **options))
        assert float(function(z, grid, **options)) == expected
        assert float(function(z[order], grid[order] * 2 + 1, **options)) == expected


def test_batches_hold_their_factor_fixed_and_let_the_others_vary():
    from drkm.metrics._sampling import make_sampler

    sizes = (3, 4, 5)
    grid = np.stack(np.unravel_index(np.arange(60), sizes), axis=1)
    rng = np.random.default_rng(0)
    for factor_sizes in (None, sizes):
        sampler = make_sampler(np.zeros((60, 1)), grid, factor_sizes, "this")
        factor = rng.integers(3, size=200)
        rows = sampler.batches(factor, 64, rng, pairs=False)
        fixed = np.take_along_axis(grid[rows], factor[:, None, None], axis=2)[..., 0]
        assert (fixed == fixed[:, :1]).all()
        first, second = sampler.batches(factor, 64, rng, pairs=True)
        same = grid[first] == grid[second]
        assert np.take_along_axis(same, factor[:, None, None], axis=2).all()
        for j, size in enumerate(sizes):
            share = same[factor != j][..., j].mean()
            assert share == pytest.approx(1 / size, abs=0.03)
            counts = np.bincount(grid[rows[factor != j]][..., j].ravel(), minlength=size)
            assert counts.min() > 0.8 * counts.mean()


def test_the_same_seed_gives_the_same_score_and_another_one_does_not():
    z, y, _ = draw(3)
    for function in (metrics.factor_vae, metrics.beta_vae, metrics.sap, metrics.dci):
        assert float(function(z, y)) == float(function(z, y))
        assert float(function(z, y)) != float(function(z, y, random_state=1))
