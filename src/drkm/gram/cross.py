"""How the first layer sees new points, a batch at a time: what encoders and pre-images take."""

from __future__ import annotations

import torch
from torch import Tensor

from drkm.kernels import Kernel, Pairwise
from drkm.rows import Rows, mean_row


class Cross:
    """Features of new points where the kernel has explicit ones, else their kernel values with the samples.

    What depends on the samples alone is computed once, at the first batch.

    Parameters
    ----------
    kernel : Kernel
        Kernel of the first layer, with numbers for parameters.
    points : Tensor or Rows, of shape (n, d)
        The samples. Those in a file are read in tiles for every batch.
    """

    def __init__(self, kernel: Kernel, points: Tensor | Rows):
        self.kernel = kernel
        self.points = points
        self._origin: Tensor | None = None
        self._samples: Tensor | None = None

    def __getstate__(self) -> dict[str, object]:
        # What can be computed again does not travel with a model.
        return {**vars(self), "_origin": None, "_samples": None}

    def __call__(self, new: Tensor) -> Tensor:
        """Return the features or kernel values, one row a new point."""
        with torch.no_grad():
            if self.kernel.is_explicit:
                return self.kernel.features(new)
            if isinstance(self.kernel, Pairwise):
                return self._pairwise(self.kernel, new)
            return self.kernel(new, self.points)  # type: ignore[arg-type]

    def _pairwise(self, kernel: Pairwise, new: Tensor) -> Tensor:
        if kernel.is_isotropic and self._origin is None:
            self._origin = mean_row(self.points)
        origin = 0 if self._origin is None else self._origin
        left = kernel.factors(new - origin)[0]
        if isinstance(self.points, Rows):
            tiles = (kernel.factors(self.points[rows] - origin)[1] for rows in self.points.tiles())
            return torch.cat([kernel.values(left @ right.T) for right in tiles], dim=1)
        if self._samples is None:
            self._samples = kernel.factors(self.points - origin)[1]
        return kernel.values(left @ self._samples.T)
