"""The sample from which a model is shown, if none is named."""

from __future__ import annotations

import math
from typing import Any

from drkm.fitted import FittedModel

#: share of the mean squared length of codes below which a sample counts as isolated
ISOLATED = 0.2


def typical_row(codes: Any, fitted: FittedModel | None) -> int:
    """Return the row of codes, an array or a tensor, that is nearest to their mean, and not of an isolated sample.

    A kernel of distances that is not centred gives codes of about zero to samples far from all others, and zero may be
    nearest to the mean: rows that are much shorter than others are left out. Codes of other models, without a record of
    a fit, are centred.
    """
    distances = ((codes - codes.mean(axis=0)) ** 2).sum(axis=1)
    if fitted is not None and fitted.kernels[0].original.is_isotropic and not fitted.center:
        squares = (codes**2).sum(axis=1)
        distances[squares < ISOLATED * squares.mean()] = math.inf
    return int(distances.argmin())
