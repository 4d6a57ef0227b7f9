"""How a checkpoint identifies its fit: functions among the parameters."""

from __future__ import annotations

from functools import partial
from types import ModuleType

import pytest
import torch

from drkm.kernels import FeatureMap
from drkm.training.checkpoint.fingerprint import settings


def scaled(factor: float):
    """A map that holds its number in its closure."""
    return lambda x: factor * x


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (lambda x: torch.sin(x), lambda x: torch.cos(x)),
        (scaled(1.0), scaled(2.0)),
        (lambda x, factor=1.0: factor * x, lambda x, factor=2.0: factor * x),
        (lambda x, *, factor=1.0: factor * x, lambda x, *, factor=2.0: factor * x),
        (partial(torch.mul, other=1.0), partial(torch.mul, other=2.0)),
        (lambda x: (lambda y: y + 1)(x), lambda x: (lambda y: y + 2)(x)),
        (torch.sin, torch.cos),
    ],
    ids=["name", "closure", "default", "keyword", "partial", "inner function", "builtin"],
)
def test_functions_are_told_apart_by_what_they_do_and_known_again(one, two):
    first, second = (settings({"kernel": FeatureMap(function)}) for function in (one, two))
    assert first != second
    # Addresses differ from one process to the next.
    assert "0x" not in first + second


def test_a_function_that_calls_itself_is_told_from_others():
    def powers(factor: float):
        def power(x: torch.Tensor, degree: int = 3) -> torch.Tensor:
            return x if degree == 1 else factor * x * power(x, degree - 1)

        return settings({"kernel": FeatureMap(power)})

    assert powers(1.0) == powers(1.0) != powers(2.0)


def test_modules_and_classes_that_a_function_holds_are_known_by_their_names():
    class Own:
        def method(self):
            return self

    module = ModuleType("own")
    module.part = object()
    for held in (Own, module):
        found = settings({"kernel": FeatureMap(scaled(held))})
        assert "wn" in found
        assert "0x" not in found


def test_sets_that_a_function_holds_are_known_in_any_order():
    one, two = frozenset([0, 8]), frozenset([8, 0])
    assert list(one) != list(two)
    assert settings({"kernel": FeatureMap(scaled(one))}) == settings({"kernel": FeatureMap(scaled(two))})
