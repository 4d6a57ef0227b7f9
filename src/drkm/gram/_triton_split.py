"""The Triton kernel of the `split` operator: KB of a first layer on tensor cores, with nothing n×n stored.

A float32 number is the sum of two 16-bit halves, high + low, to 22 bits, and tensor cores multiply halves twice as
fast as tf32. Three parts of a product of two such sums matter, low·high, high·low and high·high: together they are as
exact as float32 except for its last bit. The product high·high alone (`PASSES` = 1) has the three digits of tf32.

Tensor cores truncate the result of an addition instead of rounding it, which over many additions is a bias of 1e-3.
Their sums are therefore short: each tile and each part of the features begins with zero, and its result is added to the
total by plain arithmetic. A total covers some 65,000 points, because longer sums in float32 lose digits too.
"""

# Triton compiles these functions, and types are its own.
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl

from drkm.gram._triton import _jet

#: largest squared distance of a point to itself due to rounding, relative to twice its squared length
ROUNDING = tl.constexpr(2e-6)


@triton.jit
def split_product(
    high, low, size, other_high, other_low, other_size, block_high, block_low, out, n, m, chunk, offset, scale,
    WIDTH: tl.constexpr, PART: tl.constexpr, T: tl.constexpr, PROFILE: tl.constexpr, POWER: tl.constexpr,
    SHIFT: tl.constexpr, PASSES: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Sum 2^SHIFT K_ij b_j (`scale` K_ij b_j for PROFILE "power") over one chunk of the other points.

    n and m are the numbers of points and others, padded to whole tiles; points have WIDTH numbers, and PART of these
    are multiplied at a time.
    """
    own = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    begin = tl.program_id(1).to(tl.int64) * chunk
    part = tl.arange(0, PART)
    t = tl.arange(0, T)
    own_size = tl.load(size + own)
    at = own[:, None] * WIDTH + part[None, :]
    if WIDTH == PART:
        own_high = tl.load(high + at)
        own_low = own_high
        if PASSES == 3:
            own_low = tl.load(low + at)
    total = tl.zeros((ROWS, T), tl.float32)
    for step in range(0, tl.minimum(chunk, m - begin), COLUMNS):
        column = begin + step + tl.arange(0, COLUMNS)
        other_at = column[None, :] * WIDTH + part[:, None]
        if WIDTH == PART:
            inner = _three(own_high, own_low, other_high + other_at, other_low + other_at, PASSES)
        else:
            inner = tl.zeros((ROWS, COLUMNS), tl.float32)
            for first in range(0, WIDTH, PART):
                part_high = tl.load(high + at + first)
                part_low = part_high
                if PASSES == 3:
                    part_low = tl.load(low + at + first)
                there = other_at + first
                inner += _three(part_high, part_low, other_high + there, other_low + there, PASSES)
        column_size = tl.load(other_size + column)
        value = _values(inner, own_size, column_size, offset, scale, PROFILE, POWER, SHIFT)
        value_high = value.to(tl.float16)
        value_low = value_high
        if PASSES == 3:
            value_low = (value - value_high.to(tl.float32)).to(tl.float16)
        block_at = column[:, None] * T + t[None, :]
        total += _three(value_high, value_low, block_high + block_at, block_low + block_at, PASSES)
    row = tl.program_id(1).to(tl.int64) * n + own
    tl.store(out + row[:, None] * T + t[None, :], total)


@triton.jit
def _values(
    inner, own_size, column_size, offset, scale, PROFILE: tl.constexpr, POWER: tl.constexpr, SHIFT: tl.constexpr
):  # fmt: skip
    """Return scaled kernel values of a tile from inner products of its points and their squared lengths."""
    if PROFILE == "rbf":
        # Rounding must not make a kernel value larger than 1.
        value = tl.exp2(tl.minimum(2.0 * inner - column_size[None, :] + (SHIFT - own_size[:, None]), SHIFT))
    elif PROFILE == "power":
        factor = inner + offset
        value = factor * scale
        for _ in tl.static_range(POWER - 1):
            value *= factor
    else:
        sizes = own_size[:, None] + column_size[None, :]
        q = sizes - 2.0 * inner
        # The square root of a rounding error near zero would be far larger than the error.
        value = _jet(tl.where(q > sizes * ROUNDING, q, 0.0), PROFILE, 0)[0] * scale
    return value


@triton.jit
def _three(left_high, left_low, right_high, right_low, PASSES: tl.constexpr):
    """Return the product of split numbers, its small parts first; those on the right are in memory."""
    high = tl.load(right_high)
    if PASSES == 3:
        small = tl.dot(left_high, tl.load(right_low), tl.dot(left_low, high))
        product = tl.dot(left_high, high, small)
    else:
        product = tl.dot(left_high, high)
    return product
