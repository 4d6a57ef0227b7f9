"""Accepted inputs, and the one-sentence errors for bad ones."""

import subprocess
import sys

import numpy as np
import pytest

from drkm import metrics

FUNCTIONS = [
    metrics.irs,
    metrics.mig,
    metrics.sap,
    metrics.dci,
    metrics.factor_vae,
    metrics.beta_vae,
    metrics.modularity,
    metrics.explicitness,
    metrics.evaluate,
]
every_function = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)


@pytest.fixture
def codes():
    return np.random.default_rng(0).normal(size=(60, 3))


@pytest.fixture
def factors():
    return np.random.default_rng(1).integers(3, size=(60, 2))


@every_function
def test_different_lengths_are_refused(function, codes, factors):
    with pytest.raises(ValueError, match=r"^factors: as many rows as codes are needed, 60, got 59$"):
        function(codes, factors[:-1])


def test_labels_above_the_largest_signed_integer_are_labels_like_others(codes, factors):
    large = factors.astype(np.uint64) + np.uint64(2**63)
    assert float(metrics.mig(codes, large)) == float(metrics.mig(codes, factors))


@every_function
def test_nan_is_refused_with_its_place(function, codes, factors):
    codes[4, 1] = np.nan
    with pytest.raises(ValueError, match=r"^codes: expected finite numbers, got nan in row 4, column 1$"):
        function(codes, factors)


@every_function
def test_no_rows_are_refused(function, codes, factors):
    with pytest.raises(ValueError, match=r"^codes: expected at least one row, got none$"):
        function(codes[:0], factors[:0])


@every_function
def test_one_dimensional_codes_are_refused(function, codes, factors):
    with pytest.raises(ValueError, match=r"^codes: expected a two-dimensional array.*got shape \(60,\)$"):
        function(codes[:, 0], factors)


@every_function
def test_text_is_refused(function, codes, factors):
    with pytest.raises(TypeError, match=r"^codes: expected real numbers, got dtype <U"):
        function(codes.astype(str), factors)


def test_text_labels_are_told_what_to_become(codes, factors):
    for text in (factors.astype(str), np.array([["red", 1]] * 60, dtype=object)):
        with pytest.raises(TypeError, match=r"^factors: expected real numbers, .*; number the labels of each factor$"):
            metrics.mig(codes, text)


def test_rows_of_different_lengths_are_refused(codes, factors):
    with pytest.raises(ValueError, match=r"^codes: expected a two-dimensional array, got rows of different lengths$"):
        metrics.mig([[1.0, 2.0], [3.0]], factors)


@pytest.mark.parametrize("seed", [-1, 1.5, "dice"])
@pytest.mark.parametrize("function", [metrics.sap, metrics.factor_vae, metrics.beta_vae, metrics.evaluate])
def test_a_bad_seed_is_refused_by_name(function, seed, codes, factors):
    with pytest.raises((TypeError, ValueError), match=r"^random_state: expected an integer of at least 0, got "):
        function(codes, factors, random_state=seed)


@pytest.mark.parametrize("function", [metrics.mig, metrics.sap, metrics.evaluate])
def test_one_code_where_two_are_needed_is_refused(function, codes, factors):
    with pytest.raises(ValueError, match=r"^codes: at least 2 codes are needed, got 1$"):
        function(codes[:, :1], factors)
    with pytest.raises(ValueError, match=r"^codes: at least 2 codes are needed, got 1$"):
        metrics.unsupervised(codes[:, :1])


@pytest.mark.parametrize("scale", [1e300, 1e160, 1e-300])
def test_codes_whose_variances_are_no_numbers_are_refused(scale):
    with pytest.raises(ValueError, match=r"^codes: their variances are beyond float64, divide the codes"):
        metrics.unsupervised(np.random.default_rng(0).standard_normal((50, 3)) * scale)


def test_a_covariance_needs_more_rows_than_codes():
    with pytest.raises(ValueError, match=r"^codes: the covariance of 3 codes needs at least 4 rows, got 3$"):
        metrics.unsupervised(np.random.default_rng(0).standard_normal((3, 3)))


@pytest.mark.parametrize(
    "function",
    [f for f in FUNCTIONS if f not in (metrics.irs, metrics.modularity)],
    ids=lambda f: f.__name__,
)
def test_a_factor_with_one_value_is_named(function, codes, factors):
    factors[:, 1] = 7
    with pytest.raises(ValueError, match=r"at least two values, factor 1 \(column 1\) has one, 7"):
        function(codes, factors)


@pytest.mark.parametrize(
    "function",
    [metrics.sap, metrics.dci, metrics.factor_vae, metrics.beta_vae, metrics.explicitness, metrics.evaluate],
)
def test_fractions_are_refused_where_labels_are_needed(function, codes, factors):
    with pytest.raises(ValueError, match=r"needs integer labels, factor 0 \(column 0\) holds \d\.5"):
        function(codes, factors + 0.5)


@pytest.mark.parametrize("function", [metrics.mig, metrics.modularity])
def test_continuous_factors_are_refused_where_labels_must_repeat(function, codes, factors):
    with pytest.raises(ValueError, match=r"factor 0 \(column 0\) has 60 distinct values in 60 rows"):
        function(codes, codes[:, :2])
    function(codes, metrics.discretize(codes[:, :2]))


def test_a_data_frame_names_its_factors(codes, factors):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"shape": factors[:, 0], "colour": np.zeros(60, dtype=int)})
    with pytest.raises(ValueError, match=r"colour \(column 1\) has one"):
        metrics.mig(codes, frame)


def test_frames_tensors_and_lists_give_the_same_score(codes, factors):
    pandas, torch = pytest.importorskip("pandas"), pytest.importorskip("torch")
    expected = float(metrics.mig(codes, factors))
    assert float(metrics.mig(pandas.DataFrame(codes), pandas.DataFrame(factors))) == expected
    assert float(metrics.mig(torch.tensor(codes, requires_grad=True), torch.tensor(factors))) == expected
    assert float(metrics.mig(codes.tolist(), factors.tolist())) == expected
    assert float(metrics.mig(codes, factors.astype(float))) == expected


def test_bad_options_are_refused_by_name(codes, factors):
    with pytest.raises(ValueError, match=r"^quantile: .* got 99$"):
        metrics.irs(codes, factors, quantile=99)
    with pytest.raises(ValueError, match=r"^quantile: .* got 'most'$"):
        metrics.irs(codes, factors, quantile="most")
    with pytest.raises(ValueError, match=r"^threshold: .* got None$"):
        metrics.factor_vae(codes, factors, threshold=None)
    with pytest.raises(TypeError, match=r"^factor_sizes: expected one integer per factor, got 3$"):
        metrics.beta_vae(codes, factors, factor_sizes=3)
    with pytest.raises(ValueError, match=r"^bins: expected an integer of at least 2, got 1$"):
        metrics.mig(codes, factors, bins=1)
    with pytest.raises(TypeError, match=r"^bins: expected an integer of at least 2, got 2.5$"):
        metrics.mig(codes, factors, bins=2.5)
    with pytest.raises(ValueError, match=r"^learner: .* got 'slow'$"):
        metrics.dci(codes, factors, learner="slow")
    with pytest.raises(ValueError, match=r"^test_factors: test_codes and test_factors go together"):
        metrics.sap(codes, factors, codes)
    with pytest.raises(ValueError, match=r"^test_codes: as many columns as codes are needed, 3, got 2$"):
        metrics.sap(codes, factors, codes[:, :2], factors)
    with pytest.raises(ValueError, match=r"^metric: expected one of irs, .* got 'irz'$"):
        metrics.chance("irz", codes, factors)
    with pytest.raises(ValueError, match=r"^metrics: expected some of irs, .* got 'irz'$"):
        metrics.evaluate(codes, factors, metrics=["irz"])
    with pytest.raises(ValueError, match=r"^metrics: expected some of irs, .* got none$"):
        metrics.evaluate(codes, factors, metrics=[])


def test_a_grid_must_be_one(codes, factors):
    with pytest.raises(ValueError, match=r"^codes: a full grid of 3×3 values has 9 rows, got 60$"):
        metrics.factor_vae(codes, factors, factor_sizes=(3, 3))
    with pytest.raises(ValueError, match=r"^factors: a full grid holds every combination"):
        metrics.factor_vae(codes[:9], np.stack([np.arange(9) % 3] * 2, axis=1), factor_sizes=(3, 3))


def test_results_are_frozen_numbers_with_a_readable_repr(codes, factors):
    result = metrics.mig(codes, factors)
    assert repr(result).startswith(f"MIG(score={float(result):.4f}, per_factor=[")
    assert f"{result:.2f}" == f"{float(result):.2f}"
    with pytest.raises(AttributeError):
        result.score = 1.0
    with pytest.raises(ValueError, match="read-only"):
        result.per_factor[0] = 1.0


def test_inputs_are_left_as_they_were(codes, factors):
    z, y = codes.copy(), factors.copy()
    metrics.evaluate(codes, factors, repeats=1, standardize=True)
    np.testing.assert_array_equal(codes, z)
    np.testing.assert_array_equal(factors, y)
    assert codes.flags.writeable


def test_the_import_is_light():
    heavy = ("sklearn", "torch", "scipy.stats")
    code = f"import sys, drkm.metrics; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path), "PATH": ""},
    )
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["sap", "dci", "explicitness"])
def test_test_rows_whose_columns_are_in_another_order_are_refused(name):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    codes = pd.DataFrame(rng.standard_normal((60, 2)), columns=["a", "b"])
    factors = pd.DataFrame(rng.integers(3, size=(60, 2)), columns=["shape", "size"])
    metric = getattr(metrics, name)
    with pytest.raises(
        ValueError, match=r"^test_codes: expected the columns of codes .*, \['a', 'b'\], got \['b', 'a'\]$"
    ):
        metric(codes, factors, codes[["b", "a"]], factors)
    with pytest.raises(ValueError, match=r"^test_factors: expected the columns of factors in their order"):
        metric(codes, factors, codes, factors[["size", "shape"]])
    assert float(metric(codes, factors, codes.to_numpy(), factors)) == float(metric(codes, factors, codes, factors))
