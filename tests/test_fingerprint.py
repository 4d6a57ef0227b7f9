"""How a checkpoint identifies its fit: functions and modules among the parameters."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from functools import partial
from threading import Lock
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import nn

from drkm import ConstrDRKM
from drkm.kernels import FeatureMap
from drkm.training.checkpoint import Checkpoint
from drkm.training.checkpoint.fingerprint import settings

#: globals that functions below name
WEIGHTS = torch.eye(3)
NAMES = {"one", "two", "three"}
LOGGER = logging.getLogger(__name__)


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


class Power(nn.Module):
    """A module with a plain attribute, and a method that forward calls."""

    def __init__(self, power: float):
        super().__init__()
        self._power = power
        self.logger = LOGGER

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.sign() * x**self._power

    def sign(self) -> int:
        return 1


class NegativePower(Power):
    def sign(self) -> int:
        return -1


class Shift(nn.Module):
    """A module with a buffer that its state does not have."""

    def __init__(self, shift: float):
        super().__init__()
        self.register_buffer("shift", torch.tensor(shift), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.shift


class Weighted:
    """A callable object."""

    def __init__(self):
        self.lock = Lock()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return weighted(x)


def weighted(x: torch.Tensor) -> torch.Tensor:
    LOGGER.debug("called")
    return x @ WEIGHTS


def named(x: torch.Tensor) -> torch.Tensor:
    return x if str(x) in {"one", "two"} else x + len(NAMES)


def fingerprint_of(function) -> str:
    return settings({"kernel": FeatureMap(function)})


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (Power(2), Power(3)),
        (nn.Sequential(nn.Linear(3, 3, bias=False), Power(2)), nn.Sequential(nn.Linear(3, 3, bias=False), Power(3))),
        (Power(2).forward, Power(3).forward),
        (Shift(1.0), Shift(2.0)),
        (nn.MultiheadAttention(4, 1), nn.MultiheadAttention(4, 2)),
    ],
    ids=["attribute", "of a part", "method", "buffer", "option of torch"],
)
def test_modules_are_told_apart_by_their_attributes(one, two):
    torch.manual_seed(0)
    for module in (one, two):
        for parameter in module.parameters() if isinstance(module, nn.Module) else ():
            nn.init.ones_(parameter)
    assert fingerprint_of(one) != fingerprint_of(two)


def test_modules_are_told_apart_by_their_code(monkeypatch):
    before = fingerprint_of(Power(2))
    monkeypatch.setattr(Power, "sign", NegativePower.sign)
    assert fingerprint_of(Power(2)) != before


@pytest.mark.parametrize(
    "function",
    [weighted, lambda x: weighted(x), lambda x: [row @ WEIGHTS for row in x], Weighted(), partial(weighted)],
    ids=["named", "named by a function", "named in a comprehension", "named by an object", "partial"],
)
def test_functions_are_told_apart_by_the_values_of_globals(function, monkeypatch):
    before = fingerprint_of(function)
    assert fingerprint_of(function) == before
    monkeypatch.setitem(globals(), "WEIGHTS", 2 * torch.eye(3))
    assert fingerprint_of(function) != before


def test_functions_of_libraries_are_known_by_their_code_alone(monkeypatch):
    before = fingerprint_of(nn.functional.normalize)
    monkeypatch.setattr(nn.functional, "handle_torch_function", None)
    assert fingerprint_of(nn.functional.normalize) == before


def test_a_variable_without_a_value_is_no_obstacle():
    def function(x: torch.Tensor) -> torch.Tensor:
        return x if x is not None else later

    assert fingerprint_of(function) == fingerprint_of(function)
    later = 1


@pytest.mark.parametrize("part", ["module", "function"])
def test_a_checkpoint_of_another_feature_map_is_refused(part, tmp_path, monkeypatch):
    def fit(value: int) -> ConstrDRKM:
        monkeypatch.setitem(globals(), "WEIGHTS", value * torch.eye(3, dtype=torch.float64) + 1)
        kernel = FeatureMap(Power(value) if part == "module" else weighted)
        return ConstrDRKM(2, kernel=kernel, checkpoint=Checkpoint(tmp_path / "state", keep=True)).fit(X)

    X = np.random.default_rng(0).normal(size=(20, 3))
    first = fit(2)
    np.testing.assert_array_equal(fit(2).codes_, first.codes_)
    with pytest.raises(ValueError, match="belongs to a fit with other data or parameters"):
        fit(3)


def test_modules_and_functions_are_known_again_in_a_new_process():
    program = (
        "import test_fingerprint as here; from torch import nn\n"
        "lstm = nn.LSTM(3, 3); [nn.init.ones_(one) for one in lstm.parameters()]\n"
        "maps = here.Power(2), here.weighted, here.Weighted(), lstm, here.named\n"
        "print([here.fingerprint_of(one) for one in maps])"
    )
    paths = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    assert "0x" not in found.pop()
