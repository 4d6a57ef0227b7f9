"""Elementwise operations by numpy and by torch: the same numbers."""

import math

import pytest
import torch

from drkm.machine import elementwise
from drkm.machine.elementwise import at_most_zero_, mean_of, scaled_sum_, squared_lengths


@pytest.fixture(params=[False, True], ids=["torch", "numpy"])
def _library(request, monkeypatch):
    monkeypatch.setattr(elementwise, "_numpy_sums", lambda: request.param)


def numbers(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(0))


@pytest.mark.usefixtures("_library")
@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scaled_sums_are_written_into_the_tile(rounded, dtype):
    whole, columns, rows = numbers(30, 20, dtype=dtype), numbers(7, dtype=dtype), numbers(5, dtype=dtype)
    tile, expected = whole[3:8, 2:9], 0.7 * whole[3:8, 2:9] + columns + rows[:, None]
    assert scaled_sum_(tile, 0.7, columns, rows, rounded=rounded) is tile
    torch.testing.assert_close(whole[3:8, 2:9], expected)
    assert torch.equal(whole[8:], numbers(30, 20, dtype=dtype)[8:])


@pytest.mark.usefixtures("_library")
def test_equal_numbers_cancel_exactly_if_products_are_rounded():
    G = numbers(40, 6) @ numbers(6, 40)
    halves = G.diagonal() * (-0.5 * 0.37)
    assert (scaled_sum_(G, 0.37, halves, halves, rounded=True).diagonal() == 0).all()


@pytest.mark.usefixtures("_library")
def test_positive_numbers_become_zero_and_nan_remains():
    found = at_most_zero_(torch.tensor([[-2.0, 1e-300, math.inf, -math.inf, math.nan]], dtype=torch.float64))
    assert found[0, :4].tolist() == [-2.0, 0.0, 0.0, -math.inf]
    assert found[0, 4].isnan()


@pytest.mark.usefixtures("_library")
def test_infinite_numbers_are_left_to_the_caller():
    tile, columns = torch.full((2, 2), 1e300, dtype=torch.float64), torch.tensor([1e308, -math.inf]).double()
    found = scaled_sum_(tile, 1e10, columns, torch.zeros(2).double(), rounded=True)
    assert found[0, 0] == math.inf
    assert found[0, 1].isnan()


@pytest.mark.usefixtures("_library")
def test_sums_of_rows():
    rows = numbers(30, 20)[3:, 2:9]
    torch.testing.assert_close(squared_lengths(rows), (rows**2).sum(dim=1))
    torch.testing.assert_close(mean_of(rows), rows.sum(dim=0) / 27)


def test_tensors_without_memory_of_their_own_are_left_to_torch(monkeypatch):
    monkeypatch.setattr(elementwise, "_numpy_sums", lambda: True)
    slope = torch.func.grad(lambda x: at_most_zero_(2 * x).sum())
    assert slope(torch.tensor([1.0, -1.0])).tolist() == [0.0, 2.0]
