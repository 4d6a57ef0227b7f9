"""Detection of points that have almost nothing in common with the training samples of a model.

All such points have the same codes, which are stationary to the last digit: nothing else shows that they are
meaningless. The usual cause is data in other units, or scaled in another way.
"""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor
from torch.nn.functional import normalize

from drkm.distributed import collectives
from drkm.files.rows import Rows, tiles
from drkm.kernels import Kernel, NystroemFeatures
from drkm.strange_data.warning import StrangeDataWarning
from drkm.validation.callers import level_of_caller
from drkm.wording import counted

#: a kernel value below this, relative to those of points with themselves, counts as none: for the RBF kernel a distance
#: of 4.8σ; in held-out halves of real datasets no largest value was below 0.01
CLOSE = 1e-5
#: a point that is this many times longer, or shorter, than all samples is in other units
LONGER, SHORTER = 20.0, 50.0
#: no point counts as too short if the lengths of samples differ by this much: zero is among them
ALL_LENGTHS = 0.05
#: number of samples whose features represent all
REFERENCE_ROWS = 100


class Familiarity:
    """What a model keeps of its samples to detect points that are unlike all of them.

    For a kernel of distances, the largest kernel value with any sample decides. Random Fourier features never vanish,
    so the kernel that they approximate is used; Nyström features are short away from their landmarks. Points are also
    compared by their length, in feature space if that is explicit, so that lengths do not matter to a cosine. No sample
    is unlike all samples: the limits are those of all of them.

    Parameters
    ----------
    kernel : Kernel
        Kernel of the first layer, with all parameters as numbers.
    X : Tensor or Rows, of shape (n, d)
        The samples.
    """

    def __init__(self, kernel: Kernel, X: Tensor | Rows):
        self.kernel = kernel
        #: rows, or directions of features, that represent the samples
        self.reference: Tensor | None = None
        if kernel.is_given:
            assert isinstance(X, Tensor)
            own = X.diagonal().abs()
            self.least = min(CLOSE * float(own.mean()), float(X.abs().amax(dim=1).min()))
            self.most = float(own.max())
            return
        if isinstance(kernel, NystroemFeatures):
            # A model may have been saved without its samples, but never without its landmarks.
            X = kernel.landmarks
        elif kernel.is_explicit:
            rows = collectives.spread_rows(X, REFERENCE_ROWS)
            with torch.no_grad():
                self.reference = normalize(kernel.features(rows), dim=1) if _is_explicit(kernel) else rows
        self.most, self.least = self._survey(X)

    def _survey(self, X: Tensor | Rows) -> tuple[float, float]:
        """Return the largest and smallest length of all samples; drop a reference that does not represent them."""
        kernel, most, least, is_far = self.kernel, 0.0, math.inf, False
        # Features need smaller blocks than samples.
        blocks = getattr(kernel, "blocks", tiles)
        with torch.no_grad():
            for rows in blocks(X):
                part = X[rows]
                features = kernel.features(part) if _is_explicit(kernel) else part
                lengths = features.norm(dim=1)
                most, least = max(most, lengths.max().item()), min(least, lengths.min().item())
                is_far |= self.reference is not None and bool((self._closeness(part, features) < CLOSE).any())
        if collectives.agreed(is_far):
            self.reference = None
        return collectives.agreed(most), -collectives.agreed(-least)

    def strange(self, points: Tensor, seen: Tensor) -> Tensor:
        """Return which points are unlike all samples; `seen` is the result of `drkm.gram.Cross` for them."""
        if self.kernel.is_given:
            size = seen.abs().amax(dim=1)
            return (size < self.least) | (size > LONGER * self.most)
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
        if self.reference is None:
            return torch.ones_like(seen[:, 0])
        if _is_explicit(kernel):
            # A point without features, like zero for a linear kernel, gives NaN here, and is not far from any sample.
            return (seen @ self.reference.T).abs().amax(dim=1) / seen.norm(dim=1)
        return kernel.original(points, self.reference).amax(dim=1)


def warn_of_strangers(strange: Tensor | None) -> None:
    """Warn if any points are strange."""
    if strange is not None and (count := int(strange.sum())):
        warnings.warn(describe(count, len(strange)), StrangeDataWarning, stacklevel=level_of_caller())


def describe(count: int, of: int) -> str:
    """Return a warning about the number of strange points and possible causes."""
    verb, its, question = ("is", "its", "is it") if count == 1 else ("are", "their", "are they")
    return (
        f"{count} of {counted(of, 'row')} {verb} unlike all training samples (kernel values of about 0 with all of "
        f"them, or another order of magnitude), and {its} codes and reconstructions say little: {question} in other "
        "units or scaled differently, or is sigma2 too narrow?"
    )


def _is_explicit(kernel: Kernel) -> bool:
    """Whether the kernel itself has explicit features, and not only an approximation of it."""
    return kernel.is_explicit and kernel.original is kernel
