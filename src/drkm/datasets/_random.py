"""Conversion of `random_state` to a generator, the same for every dataset."""

from __future__ import annotations

import numbers

import numpy as np

RandomState = int | np.integer | np.random.Generator | np.random.RandomState | None


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Turn a seed, a generator or `None` into a `numpy.random.Generator`.

    A generator that the caller passes is advanced, as in numpy; nothing global is read or written.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.Generator(random_state._bit_generator)
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool) and random_state >= 0:
        return np.random.default_rng(int(random_state))
    raise ValueError(f"random_state: expected None, an integer >= 0 or a numpy random generator, got {random_state!r}")
