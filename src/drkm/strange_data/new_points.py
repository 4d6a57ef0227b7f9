"""Points that have next to nothing in common with the samples that a model was trained on.

Their codes are those of nothing at all, the same for every such point, and stationary to the last digit: nothing else
tells that they are worthless. The usual cause is data in other units, or scaled in another way.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.files.rows import Rows
from drkm.kernels import Kernel, NystroemFeatures
from drkm.strange_data.warning import StrangeDataWarning
from drkm.wording import counted

#: a kernel value below this, relative to those of points with themselves, is next to none: for the RBF kernel a
#: distance of 4.8σ; held-out halves of real sets have no largest value below 0.01
CLOSE = 1e-5
#: a point that is so many times longer than all samples, or shorter, is in other units
LONGER, SHORTER = 20.0, 50.0
#: no point is too short where the samples themselves have lengths as different as this: zero is among them
ALL_LENGTHS = 0.05
#: samples whose lengths, and features, stand for those of all
REFERENCE_ROWS = 100


class Familiarity:
    """What a model keeps of its samples to tell points that are unlike all of them.

    A kernel of distances shows it by its largest value with any sample: features of random frequencies never vanish,
    so that the kernel that they approximate is asked, and Nyström features are short away from their landmarks. Points
    are compared by their length too, in feature space where this is explicit, so that a cosine has no say in it.

    Parameters
    ----------
    kernel : Kernel
        Kernel of the first layer, with numbers for parameters.
    X : Tensor or Rows, of shape (n, d)
        The samples.
    """

    def __init__(self, kernel: Kernel, X: Tensor | Rows):
        self.kernel = kernel
        if kernel.is_given:
            assert isinstance(X, Tensor)
            self.own = float(X.diagonal().abs().mean()), float(X.diagonal().abs().max())
            return
        # A model may have been saved without its samples, but never without its landmarks.
        rows = kernel.landmarks if isinstance(kernel, NystroemFeatures) else collectives.spread_rows(X, REFERENCE_ROWS)
        with torch.no_grad():
            features = kernel.features(rows) if _is_explicit(kernel) else rows
        lengths = features.norm(dim=1)
        self.most = lengths.max().item()
        self.least = lengths.min().item()
        if _is_explicit(kernel):
            self.reference = torch.nn.functional.normalize(features, dim=1)
        elif kernel.original is not kernel:
            self.reference = rows

    def strange(self, points: Tensor, seen: Tensor) -> Tensor:
        """Return which points are unlike all samples; `seen` is what `drkm.gram.Cross` gives for them."""
        if self.kernel.is_given:
            size = seen.abs().amax(dim=1)
            mean, most = self.own
            return (size < CLOSE * mean) | (size > LONGER * most)
        length = (seen if _is_explicit(self.kernel) else points).norm(dim=1)
        odd = length > LONGER * self.most
        if self.least > ALL_LENGTHS * self.most:
            odd |= (length > 0) & (length < self.least / SHORTER)
        return odd | (self._closeness(points, seen) < CLOSE)

    def _closeness(self, points: Tensor, seen: Tensor) -> Tensor:
        """Return the largest kernel value with any sample, relative to those of the two points with themselves."""
        kernel = self.kernel
        if kernel.is_isotropic:
            return seen.amax(dim=1)
        if kernel.preimages_without_samples:
            return seen.norm(dim=1) / kernel.original.diagonal(points).sqrt()
        if kernel.original is not kernel:
            return kernel.original(points, self.reference).amax(dim=1)
        if _is_explicit(kernel):
            # A point without features, like zero for a linear kernel, is not a number here, and not far from any.
            return (seen @ self.reference.T).abs().amax(dim=1) / seen.norm(dim=1)
        return torch.ones_like(seen[:, 0])


def warn_of_strangers(strange: Tensor | None, stacklevel: int) -> None:
    """Warn if there are any; `stacklevel` is that of the function that calls this."""
    if strange is not None and (count := int(strange.sum())):
        warnings.warn(describe(count, len(strange)), StrangeDataWarning, stacklevel=stacklevel + 1)


def describe(count: int, of: int) -> str:
    """Return one sentence about how many points are strange, and why they may be."""
    return (
        f"{count} of {counted(of, 'row')} {'is' if count == 1 else 'are'} unlike all training samples (next to no "
        "kernel value with any of them, or another order of magnitude), and what the model makes of them says little: "
        "are they in other units or scaled differently, or is sigma2 too narrow?"
    )


def _is_explicit(kernel: Kernel) -> bool:
    """Whether the kernel itself has features, and not only an approximation of it."""
    return kernel.is_explicit and kernel.original is kernel
