"""Linear support vector machines on one feature, for every feature and every class at once.

For code x and class c against the rest (labels s = ±1) the problem is the primal one of LIBLINEAR,

    min over w, b of  ½ w² + ½ b² + Σ_i C_i max(0, 1 - s_i (w x_i + b))²,

where the intercept is penalised like the weight. On one feature the rows inside the margin are a prefix
or a suffix of the sorted rows, so that after sorting once, value, gradient and Hessian come from
cumulative sums: a Newton step costs O(log n) per problem, whatever the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

_MAX_ITERATIONS = 100
_MAX_HALVINGS = 40


@dataclass(frozen=True)
class _Problems:
    """All one-against-rest problems of all codes, flattened; see `_prepare`."""

    code: np.ndarray
    shift: np.ndarray
    cost_positive: np.ndarray
    cost_negative: np.ndarray
    sorted_codes: np.ndarray
    moments: np.ndarray
    class_keys: list[np.ndarray]
    class_moments: list[np.ndarray]
    class_id: np.ndarray
    class_start: np.ndarray


def fit_one_against_rest(
    codes: np.ndarray, labels: np.ndarray, sizes: tuple[int, ...], penalty: float = 0.01
) -> tuple[np.ndarray, np.ndarray]:
    """Return weights and intercepts of balanced one-against-rest machines, one code at a time.

    Parameters
    ----------
    codes : ndarray of shape (n, m)
    labels : ndarray of shape (n, k)
        Column j numbers the classes of factor j, all present, from 0.
    sizes : tuple of int
        Number of classes of each factor, at least 2. A factor with two classes has one machine, that of
        class 1.
    penalty : float, default=0.01
        C of the problem; rows of the positive class have C n / (K n_c), the others C, as in LIBLINEAR.

    Returns
    -------
    weights, intercepts : ndarray of shape (m, total machines)
        Machines of factor 0 first, in the order of its classes.
    """
    m = codes.shape[1]
    problems = _prepare(codes, labels, sizes, penalty)
    w, beta = _newton(problems)
    intercept = beta - w * problems.shift
    return w.reshape(m, -1), intercept.reshape(m, -1)


def _prepare(codes: np.ndarray, labels: np.ndarray, sizes: tuple[int, ...], penalty: float) -> _Problems:
    n, m = codes.shape
    counts = np.concatenate([np.bincount(labels[:, j], minlength=size) for j, size in enumerate(sizes)]).astype(
        np.float64
    )
    n_classes = np.repeat(np.array(sizes), sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    balanced = penalty * n / (n_classes * counts)
    machines = np.concatenate(
        [offsets[j] + (np.array([1]) if size == 2 else np.arange(size)) for j, size in enumerate(sizes)]
    )
    binary = n_classes[machines] == 2
    cost_positive = balanced[machines]
    cost_negative = np.where(binary, balanced[np.maximum(machines - 1, 0)], penalty)

    order = np.argsort(codes, axis=0, kind="stable")
    shift = codes.mean(axis=0)
    centred = np.take_along_axis(codes, order, axis=0) - shift
    moments = np.zeros((m, n + 1, 3))
    keys, class_moments = [], []
    # The stable sort of 16-bit integers is a radix sort, ten times faster than that of wider ones.
    small = labels.astype(np.int16) if max(sizes) < 2**15 else labels
    for code in range(m):
        x = centred[:, code]
        powers = np.stack([np.ones(n), x, x * x], axis=1)
        np.cumsum(powers, axis=0, out=moments[code, 1:])
        # Rows of every factor are ordered by class, then by code, so that the members of a class are contiguous.
        ranks = [np.argsort(small[order[:, code], j], kind="stable") for j in range(len(sizes))]
        rank = np.concatenate(ranks)
        member = np.repeat(np.arange(len(counts)), counts.astype(np.intp))
        keys.append(member * (n + 1) + rank)
        cumulative = np.zeros((rank.size + 1, 3))
        np.cumsum(powers[rank], axis=0, out=cumulative[1:])
        class_moments.append(cumulative)
    class_start = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.intp)
    return _Problems(
        code=np.repeat(np.arange(m), machines.size),
        shift=np.repeat(shift, machines.size),
        cost_positive=np.tile(cost_positive, m),
        cost_negative=np.tile(cost_negative, m),
        sorted_codes=centred.T.copy(),
        moments=moments,
        class_keys=keys,
        class_moments=class_moments,
        class_id=np.tile(machines, m),
        class_start=np.tile(class_start[machines], m),
    )


def _stretch(problems: _Problems, w: np.ndarray, beta: np.ndarray, sign: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and last sorted row with sign·(w x + beta) < 1, for every problem."""
    m, n = problems.sorted_codes.shape
    flat = w == 0
    with np.errstate(over="ignore"):
        border = (sign - beta) / np.where(flat, 1.0, w)
    place = np.empty(w.size, dtype=np.intp)
    per_code = w.size // m
    for code in range(m):
        part = slice(code * per_code, (code + 1) * per_code)
        place[part] = np.searchsorted(problems.sorted_codes[code], border[part])
    prefix = sign * w > 0
    start = np.where(prefix, 0, place)
    stop = np.where(prefix, place, n)
    inside = sign * beta < 1
    start = np.where(flat, np.where(inside, 0, n), start)
    stop = np.where(flat, n, stop)
    return start, stop


def _sums(problems: _Problems, start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return sums of 1, x, x² over sorted rows start..stop: of all rows, and of the positive class."""
    m, n = problems.sorted_codes.shape
    everyone = problems.moments[problems.code, stop] - problems.moments[problems.code, start]
    members = np.empty_like(everyone)
    per_code = start.size // m
    base = problems.class_id * (n + 1)
    for code in range(m):
        part = slice(code * per_code, (code + 1) * per_code)
        first = np.searchsorted(problems.class_keys[code], base[part] + start[part])
        last = np.searchsorted(problems.class_keys[code], base[part] + stop[part])
        members[part] = problems.class_moments[code][last] - problems.class_moments[code][first]
    return everyone, members


class _Local(NamedTuple):
    """Value, gradient and Hessian in w and beta = b + w·shift, the intercept of the centred code."""

    value: np.ndarray
    gradient_w: np.ndarray
    gradient_beta: np.ndarray
    hessian_ww: np.ndarray
    hessian_wb: np.ndarray
    hessian_bb: np.ndarray
    determinant: np.ndarray


def _evaluate(problems: _Problems, w: np.ndarray, beta: np.ndarray) -> _Local:
    _, positive = _sums(problems, *_stretch(problems, w, beta, 1.0))
    everyone, members = _sums(problems, *_stretch(problems, w, beta, -1.0))
    negative = everyone - members
    weighted = problems.cost_positive[:, None] * positive, problems.cost_negative[:, None] * negative
    s0, s1, s2 = (weighted[0] + weighted[1]).T
    d0, d1, _ = (weighted[0] - weighted[1]).T
    shift = problems.shift
    b = beta - w * shift
    fit_w = w * s2 + beta * s1
    fit_beta = w * s1 + beta * s0
    return _Local(
        value=0.5 * (w * w + b * b) + s0 - 2 * (w * d1 + beta * d0) + w * fit_w + beta * fit_beta,
        gradient_w=w - shift * b + 2 * (fit_w - d1),
        gradient_beta=b + 2 * (fit_beta - d0),
        hessian_ww=1 + shift**2 + 2 * s2,
        hessian_wb=2 * s1 - shift,
        hessian_bb=1 + 2 * s0,
        # Expanded, so that shift² cancels analytically: every term is positive, at any offset of the codes.
        determinant=1
        + 2 * s0
        + 2 * np.maximum(shift * (shift * s0 + 2 * s1) + s2, 0.0)
        + 4 * np.maximum(s0 * s2 - s1 * s1, 0.0),
    )


def _newton(problems: _Problems) -> tuple[np.ndarray, np.ndarray]:
    """Newton's method with halved steps, on all problems side by side.

    The objective is convex and piecewise quadratic, so that a full step from the right piece is exact.
    """
    w = np.zeros(problems.code.size)
    beta = np.zeros_like(w)
    state = _evaluate(problems, w, beta)
    for _ in range(_MAX_ITERATIONS):
        value, gw, gb, hww, hwb, hbb, determinant = state
        step_w = -(hbb * gw - hwb * gb) / determinant
        step_beta = -(hww * gb - hwb * gw) / determinant
        slope = gw * step_w + gb * step_beta
        moving = -slope > 1e-15 * np.abs(value)
        if not moving.any():
            break
        length = np.where(moving, 1.0, 0.0)
        for _ in range(_MAX_HALVINGS):
            trial = _evaluate(problems, w + length * step_w, beta + length * step_beta)
            worse = trial.value > value + 1e-4 * length * slope + 1e-14 * np.abs(value)
            if not worse.any():
                break
            length = np.where(worse, length / 2, length)
        else:
            length = np.where(worse, 0.0, length)
            trial = _evaluate(problems, w + length * step_w, beta + length * step_beta)
        w, beta, state = w + length * step_w, beta + length * step_beta, trial
    return w, beta
