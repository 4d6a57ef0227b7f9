"""Numbers at the edge of what float64 can hold are refused with an error that names what is wrong."""

import numpy as np
import pytest

from drkm import ConstrDRKM
from drkm.kernels import RBF, Polynomial

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
