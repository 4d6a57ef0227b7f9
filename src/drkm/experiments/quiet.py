"""Fits of experiments without the warnings that are for users' own data."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from sklearn.exceptions import ConvergenceWarning

from drkm.strange_data import StrangeDataWarning


@contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings of convergence, which runs record, and of strange samples, as narrow bandwidths make them."""
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, StrangeDataWarning):
            warnings.simplefilter("ignore", category)
        yield
