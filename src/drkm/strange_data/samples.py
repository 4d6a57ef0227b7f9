"""Detection of samples from which a fit learns little: dominating columns or samples, and constant columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.files.rows import Rows, tiles
from drkm.kernels import Cosine, Kernel, Linear
from drkm.kernels.bandwidth import MEDIAN_ROWS
from drkm.strange_data.new_points import CLOSE
from drkm.wording import counted

#: this share of the squared distances is nearly all of them
NEARLY_ALL = 0.99
#: columns are few up to this number, and up to this share of all
FEW, FEW_SHARE = 5, 0.2
#: units differ if variances differ by this factor: 30 in the values
OTHER_UNITS = 1e3
#: a column whose variance is below this share of its mean square counts as constant
CONSTANT = 1e-3
#: if other columns have one value in this share of the samples, like pixels at a border, constant ones are expected
NEARLY_CONSTANT = 0.9
#: number of samples farthest from the centre that are checked
CANDIDATES = 10
#: with at least this many samples, one that has more than this share of all squared lengths dominates
LEAST_SAMPLES, OUTWEIGHS = 10, 0.5
#: numbers of the rows that represent all samples
BLOCK = 1 << 20


def complaints(
    kernel: Kernel,
    X: Tensor | Rows,
    center: bool,
    names: Sequence[Any] | None = None,
    places: Sequence[int] | None = None,
    *,
    of_columns_only: bool = False,
) -> list[str]:
    """Return a warning for each way in which samples are strange to the kernel of the first layer.

    `names` are the column names, and `places` the positions of the samples among those that they were drawn from, if
    they were. `of_columns_only` leaves out warnings of single samples, for those who look for strange ones. Precomputed
    Gram matrices and the caller's feature maps have no columns to check.
    """
    kernel = kernel.original
    if not (kernel.is_pairwise or (kernel.is_explicit and kernel.rotation_invariant)):
        return []
    rows = collectives.spread_rows(X, max(LEAST_SAMPLES, min(MEDIAN_ROWS, BLOCK // X.shape[1])))
    constant = _constant_columns(X, rows)
    # Processes that share the samples check a subset of all of them.
    X = X if collectives.current() is None else rows
    rows = rows.double()
    # Some rows suffice for a centre: to read all samples once more, from a file, can take longer than a fit.
    about = rows.mean(dim=0) if kernel.is_isotropic or (center and isinstance(kernel, Linear)) else None
    told, limit = _outliers(kernel, X, about, places)
    kept = rows[_squares(rows, about) < limit]
    heavy, outweigh = _columns(kept if len(kept) > 1 else rows, about is not None, names)
    told = [] if of_columns_only else told
    return told + outweigh + _say_nothing([index for index in constant if index not in heavy], X.shape[1], names)


def _outliers(
    kernel: Kernel, X: Tensor | Rows, about: Tensor | None, places: Sequence[int] | None
) -> tuple[list[str], float]:
    """Return a warning about samples far from all others, and the squared length beyond which samples are."""
    squares = torch.cat([_squares(part, about) for part in _parts(X)])
    farthest = squares.topk(min(CANDIDATES, len(squares)))
    if kernel.is_isotropic:
        largest = torch.full_like(farthest.values, -torch.inf)
        points, begin = X[farthest.indices], 0
        for part in _parts(X):
            k = kernel(points, part).double()
            own = farthest.indices[:, None] == torch.arange(begin, begin + len(part), device=k.device)
            largest = torch.maximum(largest, k.masked_fill(own, -torch.inf).amax(dim=1))
            begin += len(part)
        alone = largest < CLOSE
        why = ("has", "have", "a kernel value of about 0 with every other sample")
    elif isinstance(kernel, Cosine):
        return [], torch.inf
    else:
        alone = (farthest.values > OUTWEIGHS * squares.sum()) & (len(squares) >= LEAST_SAMPLES)
        why = ("is", "are", "longer than all other samples together")
    if not alone.any():
        return [], torch.inf
    which = farthest.indices[alone].tolist()
    which = which if places is None else [places[index] for index in which]
    return [_alone(which, len(alone), why)], farthest.values[alone].min().item()


def _alone(which: list[int], looked_at: int, why: tuple[str, str, str]) -> str:
    if len(which) == looked_at:
        return f"X: at least {counted(looked_at, 'sample')} are far from all others, is sigma2 too narrow?"
    rows = ", ".join(map(str, sorted(which)))
    one, several, what = why
    if len(which) == 1:
        head, each, them, error = f"row {rows} (counted from 0) {one}", "it gets", "it", "that is an error"
    else:
        head, each, them, error = f"rows {rows} (counted from 0) {several}", "each gets", "them", "those are errors"
    return f"X: {head} {what}: {each} a component of its own, or no code; leave {them} out if {error}"


def _columns(rows: Tensor, of_distances: bool, names: Sequence[Any] | None) -> tuple[list[int], list[str]]:
    """Return columns that dominate the others, if they are few and others vary too, and a warning about them."""
    # Squares of numbers that only a cosine kernel can use would overflow.
    rows = rows / rows.abs().max().clamp_min(torch.finfo(rows.dtype).tiny)
    variances = rows.var(dim=0, correction=0)
    weights = variances if of_distances else rows.square().mean(dim=0)
    count = weights.shape[0]
    order = weights.argsort(descending=True)
    shares = weights[order].cumsum(0) / weights.sum()
    few = int((shares < NEARLY_ALL).sum()) + 1
    heavy, others = order[:few], order[few:]
    others = others[variances[others] > 0]
    if few > _few(count) or not len(others):
        return [], []
    if weights[heavy[-1]] < OTHER_UNITS * weights[others].median():
        return [], []
    what = "squared distances between samples" if of_distances else "squared lengths of samples"
    head = f"X: {_named(heavy.tolist(), count, names)} {'has' if few == 1 else 'have'} "
    head += f"{shares[few - 1]:.1%} of the {what}, the others hardly count: "
    advice = "if units differ, standardise the columns (StandardScaler, drkm fit --scale standard)"
    if (variances[heavy] < CONSTANT * rows[:, heavy].square().mean(dim=0)).all():
        advice = f"leave {'it' if few == 1 else 'them'} out, or subtract the mean of every column"
    return heavy.tolist(), [head + advice]


def _constant_columns(X: Tensor | Rows, rows: Tensor) -> list[int]:
    """Return columns with one value in all samples, if there are few of them and every other column varies.

    `rows` are some of the samples, which may lack a rare value.
    """
    constant = (rows == rows[0]).all(dim=0).nonzero().flatten()
    if len(rows) < LEAST_SAMPLES or not 0 < len(constant) <= min(_few(X.shape[1]), X.shape[1] - 1):
        return []
    most_common = (rows == rows.median(dim=0).values).double().mean(dim=0)
    if (most_common > NEARLY_CONSTANT).sum() > len(constant):
        return []
    differ = torch.stack([(part[:, constant] != rows[0, constant]).sum() for part in _parts(X)]).sum()
    return [] if collectives.total(differ) else constant.tolist()


def _say_nothing(constant: list[int], count: int, names: Sequence[Any] | None) -> list[str]:
    if not constant:
        return []
    one = len(constant) == 1
    return [
        f"X: {_named(constant, count, names)} {'has' if one else 'have'} one value in all samples and "
        f"{'says' if one else 'say'} nothing: leave {'it' if one else 'them'} out, or look for an error in the data"
    ]


def _few(count: int) -> int:
    """Return the maximum number of columns that count as few."""
    return max(1, min(FEW, int(FEW_SHARE * count)))


def _named(columns: list[int], count: int, names: Sequence[Any] | None) -> str:
    called = ", ".join(str(index) if names is None else repr(str(names[index])) for index in columns)
    counted_from = ", counted from 0" if names is None else ""
    return f"{'column' if len(columns) == 1 else 'columns'} {called} (of {count}{counted_from})"


def _squares(rows: Tensor, about: Tensor | None) -> Tensor:
    """Return squared lengths, or squared distances from a point."""
    return (rows.double() if about is None else rows.double() - about).square().sum(dim=1)


def _parts(X: Tensor | Rows) -> Iterator[Tensor]:
    """Yield blocks of rows, so that no copy of all rows is made."""
    return (X[rows] for rows in tiles(X))
