"""Eigenpairs of kernel PCA for operators of torch, and the memory that the components of a workload need.

Those of arrays are found in `drkm.arrays`; here our own block Krylov method finds those of other operators.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from drkm.arrays.eigen_options import EigenOptions
from drkm.arrays.eigenpairs import numbers_held, numbers_of_features
from drkm.gram import Gram, Workload
from drkm.problem.eigen import LEAST_VALUE, Eigenpairs, leading_eigenpairs, least_residual, workspace_bytes
from drkm.validation.callers import level_of_caller

#: n×k blocks that are alive when eigenvectors become weights, and copies of n×D features that centring holds
RESULT_BLOCKS, CENTRING_COPIES = 5, 1.25
#: default residual of our own method, relative to the first eigenvalue
TOL = 1e-12
#: residual, relative to the first eigenvalue, that is worth a warning if none was asked for
WORTH_TELLING = 1e-8
#: products with the matrix in our own method, unless `max_iter` says otherwise
MOST_PASSES = 60


def of_gram(gram: Gram, count: int, options: EigenOptions, like: Tensor) -> Eigenpairs:
    """Return the leading eigenpairs of a centred matrix, with a warning if they are less accurate than they can be."""
    passes = options.max_iter or MOST_PASSES
    pairs = leading_eigenpairs(gram, count, like=like, tol=options.tol or TOL, max_passes=passes)
    rounding = gram.rounding(like.dtype) / max(pairs.values[0].item(), LEAST_VALUE)
    allowed = max(options.tol or WORTH_TELLING, least_residual(like.dtype), rounding)
    if not pairs.residual <= allowed:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"max_iter: after {passes} products with the kernel matrix the residual of the eigenpairs is "
            f"{pairs.residual:.1g} of the largest eigenvalue, asked for {allowed:.1g}: raise max_iter or tol, or take "
            'device="cpu" with gram="dense"',
            ConvergenceWarning,
            stacklevel=level_of_caller(),
        )
    return pairs


def workspace(work: Workload, features: int | None, options: EigenOptions, *, in_memory: bool) -> int:
    """Return the bytes that the components of a workload need besides its samples, their features and their matrix.

    `features` is the number of features that are kept, if they are. `in_memory` says that the matrix, or that of more
    features than samples, is in the memory of a CPU.
    """
    n, count = work.n, work.components
    results = RESULT_BLOCKS * n * count
    if features is not None and work.device.type == "cpu" and not (in_memory and features >= n):
        # At the end the features are centred in place, and multiplied by the eigenvectors.
        centring = int(CENTRING_COPIES * n * features)
        solving = n * features + max(centring, numbers_of_features(n, features, count, options))
        return work.item * max(solving, centring + results + n * count)
    if not in_memory:
        like = torch.empty(0, dtype=work.dtype, device=work.device)
        return max(workspace_bytes(n, count, options.tol or TOL, like), work.item * results)
    solving = numbers_held(n, count, options)
    # The results take the place of the matrix, which the strategy counts unless it has features.
    needed = max(solving, results - n**2)
    return work.item * (needed if features is None else n**2 + needed)
