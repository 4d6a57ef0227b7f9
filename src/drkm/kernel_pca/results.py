"""The results of a fit of `KernelPCA`, of which its attributes are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from drkm.inference.kernel_projection import KernelProjection
    from drkm.serving import Projection


class Results(NamedTuple):
    """The results of a fit.

    samples : those that the model keeps
    values, vectors : eigenpairs
    source : what gives the codes of new points
    precision : that of codes
    """

    samples: Any
    values: Any
    vectors: Any
    source: KernelProjection | Projection
    precision: str
