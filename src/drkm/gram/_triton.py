"""The Triton kernels of the `fused` operator: sweeps that store nothing n×n, and the product with a stored K_1.

In a sweep a thread owns a few rows i and loops over the samples j, whose numbers are the same for all threads and come
from the nearest cache. Points, differences and sums of a row live in registers, so that a pair costs its arithmetic and
little else, in plain float32 (or float64). Tensor cores would mostly multiply padding here, because a sample has only a
dozen numbers, and would need three passes to keep the digits of float32.

Exponents are formed from differences u_j - u_i, which lose no digits; ‖u_i‖² + ‖u_j‖² - 2⟨u_i, u_j⟩ would.
Sums over j are cut into chunks, one program each, whose results the caller adds up: always in the same order, unlike
atomic additions, and with less rounding than one long sum.

A sweep reads the samples twice: `columns` (one row per column, for the rows that threads own) and `rows`. Points arrive
scaled such that exponentials are powers of 2, which is what the hardware computes (`drkm.kernels.Profile`).
"""

# Triton compiles these functions; tuples grow by + there, and types are its own.
# ruff: noqa: RUF005
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl

LN2 = tl.constexpr(0.6931471805599453)
LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def sweep_product(
    columns, rows, out, n, chunk,
    S: tl.constexpr, T: tl.constexpr, PROFILE: tl.constexpr, BLOCK: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """Sum K_ij b_j over one chunk; a sample is [u | b] with S + T numbers."""
    WIDTH: tl.constexpr = S + T
    own, inside = _own_rows(n, BLOCK)
    zero = tl.zeros((BLOCK,), columns.dtype.element_ty)
    u = _own_columns(columns, own, inside, n, 0, S)
    product = (zero,) * T
    sample, count = _chunk(rows, n, chunk, WIDTH)
    for _ in tl.range(0, count, loop_unroll_factor=UNROLL):
        v = _sample(sample, 0, S)
        b = _sample(sample, S, T)
        sample += WIDTH
        d = _differences(v, u, S)
        value = _jet(_inner(d, d, zero, S), PROFILE, 0)[0]
        product = _add(product, value, b, T)
    _store(out, product, own, inside, n, 0, T, T)


@triton.jit
def sweep_sums(
    columns, rows, out, n, chunk,
    S: tl.constexpr, T: tl.constexpr, PROFILE: tl.constexpr, BLOCK: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """Sum K_ij a_j, W_ij (u_j - u_i) and W_ij over one chunk, W_ij = f'_ij ⟨a_i, a_j⟩; a sample is [u | a]."""
    WIDTH: tl.constexpr = S + T
    own, inside = _own_rows(n, BLOCK)
    zero = tl.zeros((BLOCK,), columns.dtype.element_ty)
    u = _own_columns(columns, own, inside, n, 0, S)
    a = _own_columns(columns, own, inside, n, S, T)
    product = (zero,) * T
    pull = (zero,) * S
    total = zero
    sample, count = _chunk(rows, n, chunk, WIDTH)
    for _ in tl.range(0, count, loop_unroll_factor=UNROLL):
        v = _sample(sample, 0, S)
        b = _sample(sample, S, T)
        sample += WIDTH
        d = _differences(v, u, S)
        value, slope = _jet(_inner(d, d, zero, S), PROFILE, 1)
        weight = slope * _inner(a, b, zero, T)
        product = _add(product, value, b, T)
        pull = _add(pull, weight, d, S)
        total += weight
    _store(out, product, own, inside, n, 0, T, WIDTH + 1)
    _store(out, pull, own, inside, n, T, S, WIDTH + 1)
    _store(out, (total,), own, inside, n, WIDTH, 1, WIDTH + 1)


@triton.jit
def sweep_tangent(
    columns, rows, out, n, chunk,
    S: tl.constexpr, T: tl.constexpr, PROFILE: tl.constexpr, BLOCK: tl.constexpr, UNROLL: tl.constexpr,
    EXPONENT: tl.constexpr,
):  # fmt: skip
    """Sum the derivatives of `sweep_sums` along (du, da) over one chunk; a sample is [u | a | du | da].

    `EXPONENT` turns ⟨d, dd⟩ of scaled points into de, the derivative of e = -‖u_i-u_j‖²/(2σ²).
    """
    WIDTH: tl.constexpr = S + T
    own, inside = _own_rows(n, BLOCK)
    zero = tl.zeros((BLOCK,), columns.dtype.element_ty)
    u = _own_columns(columns, own, inside, n, 0, S)
    a = _own_columns(columns, own, inside, n, S, T)
    du = _own_columns(columns, own, inside, n, WIDTH, S)
    da = _own_columns(columns, own, inside, n, WIDTH + S, T)
    product = (zero,) * T
    pull = (zero,) * S
    sample, count = _chunk(rows, n, chunk, 2 * WIDTH)
    for _ in tl.range(0, count, loop_unroll_factor=UNROLL):
        v = _sample(sample, 0, S)
        b = _sample(sample, S, T)
        dv = _sample(sample, WIDTH, S)
        db = _sample(sample, WIDTH + S, T)
        sample += 2 * WIDTH
        d = _differences(v, u, S)
        dd = _differences(dv, du, S)
        value, slope, bend = _jet(_inner(d, d, zero, S), PROFILE, 2)
        de = _inner(d, dd, zero, S) * EXPONENT
        inner = _inner(a, b, zero, T)
        d_inner = _inner(a, db, _inner(da, b, zero, T), T)
        product = _add(_add(product, value, db, T), slope * de, b, T)
        pull = _add(_add(pull, slope * d_inner + bend * de * inner, d, S), slope * inner, dd, S)
    _store(out, product, own, inside, n, 0, T, WIDTH)
    _store(out, pull, own, inside, n, T, S, WIDTH)


@triton.jit
def stored_product(
    K, stride, block, out, n, chunk, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """Sum K_ij b_j over one chunk of a stored matrix; its rows and the block are padded with zeros to whole tiles.

    Reading K takes most of the time, so that multiplying the padding on tensor cores costs nothing.
    """
    own = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    begin = tl.program_id(1) * chunk
    column = begin + tl.arange(0, COLUMNS)
    t = tl.arange(0, WIDTH)
    # Rows beyond the last repeat it: masks would keep the hardware from reading several numbers at once.
    tile = K + tl.minimum(own, n - 1)[:, None].to(tl.int64) * stride + column[None, :]
    b = block + column[:, None].to(tl.int64) * WIDTH + t[None, :]
    product = tl.zeros((ROWS, WIDTH), K.dtype.element_ty)
    for _ in range(0, tl.minimum(chunk, stride - begin), COLUMNS):
        product = tl.dot(tl.load(tile), tl.load(b), product, input_precision="tf32x3")
        tile += COLUMNS
        b += COLUMNS * WIDTH
    row = tl.program_id(1).to(tl.int64) * n + own
    tl.store(out + row[:, None] * WIDTH + t[None, :], product, mask=own[:, None] < n)


@triton.jit
def _jet(q, PROFILE: tl.constexpr, ORDER: tl.constexpr):
    """Return f, f', f'' up to an order, in e = -‖x-y‖²/(2σ²), from the squared distance q of scaled points."""
    if PROFILE == "rbf":
        value = tl.exp2(-q)
        jet = (value, value, value)
    else:
        root = tl.sqrt(q)
        decay = tl.exp2(-root)
        a = root * LN2
        # Coincident points contribute nothing to gradients.
        inverse = tl.where(q > 0, LOG2E / tl.where(q > 0, root, 1.0), 0.0)
        if PROFILE == "laplacian":
            jet = (decay, decay * inverse, decay * inverse * inverse * (1.0 + inverse))
        elif PROFILE == "matern32":
            jet = ((1.0 + a) * decay, 3.0 * decay, 9.0 * decay * inverse)
        else:
            jet = ((1.0 + a + a * a / 3.0) * decay, (5.0 / 3.0) * (1.0 + a) * decay, (25.0 / 3.0) * decay)
    return jet[: ORDER + 1]


@triton.jit
def _own_rows(n, BLOCK: tl.constexpr):
    own = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    return own, own < n


@triton.jit
def _chunk(rows, n, chunk, WIDTH: tl.constexpr):
    """Return the address of the program's first sample and the number of its samples."""
    begin = tl.program_id(1) * chunk
    return rows + begin.to(tl.int64) * WIDTH, tl.minimum(chunk, n - begin)


@triton.jit
def _own_columns(columns, own, inside, n, FIRST: tl.constexpr, COUNT: tl.constexpr):
    out = ()
    # Repeated steps instead of multiples of n, which may exceed 32 bits.
    column = columns + own
    for _ in tl.static_range(FIRST):
        column += n
    for _ in tl.static_range(COUNT):
        out = out + (tl.load(column, mask=inside, other=0.0),)
        column += n
    return out


@triton.jit
def _sample(sample, FIRST: tl.constexpr, COUNT: tl.constexpr):
    out = ()
    for k in tl.static_range(COUNT):
        out = out + (tl.load(sample + FIRST + k),)
    return out


@triton.jit
def _differences(x, y, COUNT: tl.constexpr):
    out = ()
    for k in tl.static_range(COUNT):
        out = out + (x[k] - y[k],)
    return out


@triton.jit
def _inner(x, y, start, COUNT: tl.constexpr):
    total = start
    for k in tl.static_range(COUNT):
        total += x[k] * y[k]
    return total


@triton.jit
def _add(sums, weight, x, COUNT: tl.constexpr):
    out = ()
    for k in tl.static_range(COUNT):
        out = out + (sums[k] + weight * x[k],)
    return out


@triton.jit
def _store(out, sums, own, inside, n, FIRST: tl.constexpr, COUNT: tl.constexpr, WIDTH: tl.constexpr):
    column = out + (tl.program_id(1).to(tl.int64) * WIDTH + FIRST) * n + own
    for k in tl.static_range(COUNT):
        tl.store(column, sums[k], mask=inside)
        column += n
