"""Numbers at the edge of what float64 can hold are refused with an error that names what is wrong."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from drkm import ConstrDRKM, load
from drkm.kernels import RBF, Polynomial
from drkm.strange_data import StrangeDataWarning

X = np.random.default_rng(0).standard_normal((50, 4))
BEYOND = X.astype(object)
BEYOND[3, 2] = 10**400


@pytest.mark.parametrize(("size", "word"), [(1e-165, "small"), (1e-158, "small"), (1e160, "large")])
@pytest.mark.parametrize(
    ("kernel", "what"),
    [("rbf", "distances"), ("laplacian", "distances"), ("polynomial", "lengths"), ("linear", "lengths")],
)
def test_data_whose_squares_cannot_be_held_are_refused(kernel, what, size, word):
    with pytest.raises(ValueError, match=f"X: squared {what} are too {word} for float64, divide the data by"):
        ConstrDRKM(2, kernel=kernel).fit(X * size)


@pytest.mark.parametrize("size", [1e-165, 1e-150, 1e150, 1e160])
def test_a_cosine_takes_data_of_any_size(size):
    np.testing.assert_allclose(
        ConstrDRKM(2, kernel="cosine").fit(X * size).codes_, ConstrDRKM(2, kernel="cosine").fit(X).codes_, atol=1e-8
    )


@pytest.mark.parametrize("kernel", ["rbf", "polynomial", "linear"])
@pytest.mark.parametrize("value", [0.0, 1e-200])
def test_equal_samples_are_no_reason_to_refuse(kernel, value):
    if kernel == "rbf" or value == 0:
        assert ConstrDRKM(1, kernel=kernel).fit(np.full((20, 3), value)).converged_


def gram_matrix(points):
    return points @ points.T


@pytest.mark.parametrize(("dtype", "size"), [("float32", 1e-12), ("float64", 1e-80)])
@pytest.mark.parametrize(
    ("n_components", "kernel", "given"),
    [
        (3, "linear", None),
        ((3, 2), ("linear", "rbf"), None),
        (3, Polynomial(degree=1, gamma=1.0, offset=0.0), None),
        (3, "precomputed", gram_matrix),
    ],
)
@pytest.mark.parametrize("solver", ["auto", "penalty"])
def test_kernel_values_whose_squares_underflow_are_refused(n_components, kernel, given, solver, dtype, size):
    """The norm of the gradient would be 0, and every start stationary."""
    points = size * X if given is None else given(size * X)
    model = ConstrDRKM(n_components, kernel=kernel, init="orthogonal", solver=solver, random_state=0, dtype=dtype)
    advice = "divide the data by their typical size" + (', or take dtype="float64"' if dtype == "float32" else "")
    with pytest.raises(ValueError, match=rf"^X: kernel values of \S+ are too small for {dtype}, {advice}$"):
        model.fit(points)


@pytest.mark.parametrize(("dtype", "size"), [("float32", 1e-15), ("float64", 1e-100)])
@pytest.mark.parametrize("n_components", [3, (3, 2)])
def test_powers_of_samples_that_underflow_to_0_are_refused(n_components, dtype, size):
    """Every point would be stationary; the kernel of samples that are 0 themselves has no other values."""
    cubic = Polynomial(degree=3, gamma=1.0, offset=0.0)
    model = ConstrDRKM(n_components, kernel=(cubic, "rbf")[: np.size(n_components)], dtype=dtype)
    with pytest.raises(ValueError, match=rf"^X: kernel values of 0\.0e\+00 are too small for {dtype}, divide the data"):
        model.fit(size * X)
    assert ConstrDRKM(1, kernel=cubic, dtype=dtype).fit(0 * X).converged_


@pytest.mark.parametrize(("dtype", "eta"), [("float32", 1e25), ("float64", 1e150)])
def test_a_weight_under_which_squares_of_the_gradient_underflow_is_refused(dtype, eta):
    with pytest.raises(
        ValueError, match=rf"^eta: \S+ is too large for {dtype}, expected at most \S+ for kernel values"
    ):
        ConstrDRKM((3, 2), eta=eta, dtype=dtype).fit(X)


@pytest.mark.parametrize(("dtype", "power"), [("float32", 22), ("float64", 230)])
def test_small_data_that_are_not_refused_have_the_codes_of_any_other_size(dtype, power):
    """Powers of two are exact, so that nothing but underflow can change the codes."""
    new = np.random.default_rng(1).standard_normal((5, 4))
    model, small = (
        ConstrDRKM((3, 2), kernel=("linear", "rbf"), eta=(1, 8 / scale**2), dtype=dtype).fit(scale * X)
        for scale in (1.0, 2.0**-power)
    )
    assert small.converged_
    tolerance = 50 * np.finfo(dtype).eps
    np.testing.assert_allclose(small.codes_, model.codes_, atol=tolerance)
    np.testing.assert_allclose(small.transform(2.0**-power * new), model.transform(new), atol=tolerance)


@pytest.mark.parametrize(("kernel", "size", "eta"), [("rbf", 1.0, 1e-60), ("linear", 1e30, 1.0)])
@pytest.mark.parametrize("n_components", [3, (3, 2)])
def test_a_residual_beyond_float32_changes_no_codes_of_new_points_and_no_file(
    n_components, kernel, size, eta, tmp_path
):
    new = np.random.default_rng(1).standard_normal((5, 4))
    # The weight of the second layer grows with the gradient of the first.
    weights, large = ((1.0,), (eta,)) if n_components == 3 else ((1.0, 2.0), (eta, 2.0 * eta / size**2))
    kernels = kernel if n_components == 3 else (kernel, "rbf")
    model = ConstrDRKM(n_components, kernel=kernels, eta=weights, axes=None).fit(X)
    extreme = ConstrDRKM(n_components, kernel=kernels, eta=large, axes=None).fit(size * X)
    np.testing.assert_allclose(extreme.transform(size * new), model.transform(new), atol=1e-5)
    extreme.save(tmp_path / "model.safetensors")
    found = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(found.transform(size * new), extreme.transform(size * new))


@pytest.mark.parametrize(("dtype", "size"), [("float32", 1e30), ("float64", 1e160)])
@pytest.mark.parametrize("n_components", [3, (3, 2)])
def test_codes_of_points_whose_kernel_values_overflow_are_doubted(n_components, dtype, size):
    model = ConstrDRKM(n_components, kernel=("linear", "rbf")[: np.size(n_components)], dtype=dtype).fit(X)
    assert (model.encode(size * X[:2]).residual == np.inf).all()
    doubt = pytest.warns(ConvergenceWarning, match="codes of 2 of 2 points are not stationary")
    with pytest.warns(StrangeDataWarning), doubt:
        model.transform(size * X[:2])


def test_an_integer_beyond_float64_is_refused_wherever_numbers_are_taken():
    model = ConstrDRKM((2, 1)).fit(X)
    held = "expected numbers that float64 can hold, got one beyond 1.8e308"
    for attempt in (lambda: ConstrDRKM(2).fit(BEYOND), lambda: ConstrDRKM(2).fit(BEYOND.tolist())):
        with pytest.raises(ValueError, match=f"^X: {held}"):
            attempt()
    with pytest.raises(ValueError, match=f"^X: {held}"):
        model.transform(BEYOND)
    with pytest.raises(ValueError, match=f"^values: {held}"):
        model.traverse(1, 0, [10**400])
    with pytest.raises(ValueError, match="tol: expected a number of at least 0"):
        ConstrDRKM(2, tol=10**400).fit(X)
    with pytest.raises(ValueError, match="sigma2: expected a positive finite number"):
        RBF(10**400)
    with pytest.raises(ValueError, match="gamma: expected a positive number"):
        Polynomial(gamma=10**400)


@pytest.mark.parametrize("pair", [(True, 0), (1, False), (1, np.True_)])
def test_a_truth_value_is_no_component(pair):
    model = ConstrDRKM((2, 1)).fit(X)
    with pytest.raises(TypeError, match="layer, index: expected pairs of layer and index"):
        model.traverse(*pair, [0.0])
    with pytest.raises(TypeError, match="components: expected pairs of layer and index"):
        model.denoise(X, components=[pair])
