"""Reading the golden cases: inputs in .npz, expected values in .json beside them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "golden"
CASES = tuple(path.stem for path in sorted(FOLDER.glob("p*.json")))
EDGES = tuple(name for name in json.loads((FOLDER / "edge_cases.json").read_text()) if not name.startswith("_"))


@dataclass(frozen=True)
class Case:
    codes: np.ndarray
    factors: np.ndarray
    train: np.ndarray
    test: np.ndarray
    expected: dict[str, Any]

    @property
    def halves(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.rows(self.train, self.test)

    def rows(self, train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.codes[train], self.factors[train], self.codes[test], self.factors[test]


@cache
def golden(name: str) -> Case:
    with np.load(FOLDER / f"{name}.npz") as data:
        arrays = {key: data[key] for key in ("codes", "factors", "train_idx", "test_idx")}
    expected = json.loads((FOLDER / f"{name}.json").read_text())
    return Case(arrays["codes"], arrays["factors"], arrays["train_idx"], arrays["test_idx"], expected)


@cache
def edge(name: str) -> Case:
    with np.load(FOLDER / "edge_cases.npz") as data:
        codes, factors = data[f"{name}__codes"], data[f"{name}__factors"]
    expected = json.loads((FOLDER / "edge_cases.json").read_text())[name]
    return Case(codes, factors, np.arange(400), np.arange(400, 600), expected)


def is_finite(value: Any) -> bool:
    """Whether the reference gave a number: not nan, not an infinity, not an error."""
    return isinstance(value, float | int)
