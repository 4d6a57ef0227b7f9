"""Checks that every dataset with factors passes."""

import numpy as np
import originals
import pytest

from drkm import datasets
from drkm.datasets import dsprites


def _array(folder):
    names = ("elevation", "azimuth", "object_type")
    return datasets.load_cars3d(originals.compact_npz(folder / "cars.npz", names, (3, 4, 5), (64, 64, 3)))


MEMBERS = {
    "rendered": lambda folder: datasets.load_dsprites(source="rendered"),
    "own grid": lambda folder: datasets.load_dsprites(values={"scale": [0.7], "orientation": [0.0, 1.0, 2.0]}),
    "original": lambda folder: dsprites.read_original(
        originals.dsprites_npz(folder / "d.npz"), originals.DSPRITES_SIZES
    ),
    "gaussian": lambda folder: datasets.load_noisy_dsprites(source="rendered"),
    "uniform": lambda folder: datasets.load_noisy_dsprites(source="rendered", definition="uniform"),
    "array": _array,
}


@pytest.fixture(params=MEMBERS)
def data(request, tmp_path):
    return MEMBERS[request.param](tmp_path)


def test_images_are_uint8_of_the_promised_shape(data):
    images, factors = data.sample(7, random_state=0)
    assert images.dtype == np.uint8
    assert images.shape == (7, *data.image_shape)
    assert factors.shape == (7, len(data.factor_names)) == (7, len(data.factor_sizes))
    assert factors.dtype.kind == "i"
    assert np.all((factors >= 0) & (factors < data.factor_sizes))


def test_sampled_images_are_those_of_their_factors(data):
    images, factors = data.sample(20, random_state=1)
    np.testing.assert_array_equal(images, data.images_at(factors))
    np.testing.assert_array_equal(images[::-1], data.images_at(factors[::-1]))


def test_one_seed_gives_one_sample(data):
    first, second = data.sample(10, random_state=5), data.sample(10, random_state=5)
    np.testing.assert_array_equal(first[1], second[1])
    assert not np.array_equal(first[1], data.sample(10, random_state=6)[1])
    rng = np.random.default_rng(5)
    np.testing.assert_array_equal(first[1], data.sample(10, random_state=rng)[1])
    assert not np.array_equal(first[1], data.sample(10, random_state=rng)[1])


def test_without_replacement_no_image_comes_twice(data):
    n = min(len(data), 300)
    assert len(np.unique(data.sample(n, random_state=0)[1], axis=0)) == n


def test_with_replacement_more_can_be_drawn_than_there_are(tmp_path):
    data = _array(tmp_path)
    factors = data.sample(200, random_state=0, replace=True)[1]
    assert len(factors) == 200
    assert len(np.unique(factors, axis=0)) <= 60


def test_rows_run_through_the_grid_in_c_order(data):
    rows = np.array([0, 1, len(data) - 1])
    factors = data.factors_at(rows)
    np.testing.assert_array_equal(factors[0], 0)
    if len(data) == np.prod(data.factor_sizes):
        np.testing.assert_array_equal(factors[2], np.array(data.factor_sizes) - 1)
    np.testing.assert_array_equal(data._rows_of(factors), rows)


def test_no_rows_give_no_images(data):
    assert data.images_at(np.empty((0, len(data.factor_sizes)), int)).shape == (0, *data.image_shape)


def test_bad_input_is_refused(data):
    k = len(data.factor_sizes)
    with pytest.raises(ValueError, match=r"factors: expected shape \(n, "):
        data.images_at([0] * k)
    with pytest.raises(ValueError, match=r"factors: expected shape \(n, "):
        data.images_at([[0] * (k + 1)])
    with pytest.raises(ValueError, match="factors: expected integer class indices, got float64"):
        data.images_at([[0.5] * k])
    with pytest.raises(ValueError, match=f"factors: expected 0 to .* for {data.factor_names[-1]}, got"):
        data.images_at([[0] * (k - 1) + [data.factor_sizes[-1]]])
    with pytest.raises(ValueError, match=f"factors: expected 0 to .* for {data.factor_names[0]}, got"):
        data.images_at([[-1] + [0] * (k - 1)])
    with pytest.raises(ValueError, match="n: expected an integer of at least 1, got 0"):
        data.sample(0)
    with pytest.raises(ValueError, match=r"n: .* has .* images, got n="):
        data.sample(len(data) + 1)
    with pytest.raises(ValueError, match="random_state"):
        data.sample(2, random_state="x")
    with pytest.raises(ValueError, match="rows: expected"):
        data.factors_at([len(data)])
    with pytest.raises(ValueError, match="rows: expected"):
        data.factors_at([[0.0]])


def test_repr_names_the_factors(data):
    for name in (data.name, *data.factor_names):
        assert name in repr(data)


def test_the_whole_grid_of_dsprites_is_never_in_memory():
    import tracemalloc

    data = datasets.load_dsprites(source="rendered")
    tracemalloc.start()
    data.sample(100, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6
