"""Kernel values or features of new points in the first layer, a batch at a time, for encoders and pre-images."""

from __future__ import annotations

import torch
from torch import Tensor

from drkm.files.rows import Rows, mean_row, tiles
from drkm.kernels import Kernel, Pairwise
from drkm.machine.devices import size_on

#: samples that a batch is compared with at once
ROWS = {"cpu": 1024, "cuda": 1 << 20}


class Cross:
    """Features of new points if the kernel has explicit ones, else their kernel values with the samples.

    Parameters
    ----------
    kernel : Kernel
        Kernel of the first layer, with all parameters as numbers.
    points : Tensor or Rows, of shape (n, d)
        The samples. For every batch they are augmented, and read if they are in a file, in tiles; for a batch of some
        hundred points the kernel values cost some hundred times more than this.
    """

    def __init__(self, kernel: Kernel, points: Tensor | Rows):
        self.kernel = kernel
        self.points = points
        self._origin: Tensor | None = None

    def __getstate__(self) -> dict[str, object]:
        # What can be recomputed is not pickled with a model.
        return {**vars(self), "_origin": None}

    def __call__(self, new: Tensor) -> Tensor:
        """Return the features or kernel values, one row per new point."""
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
        out = left.new_empty(len(new), len(self.points))
        for rows in tiles(self.points, size_on(left.device, ROWS)):
            out[:, rows] = kernel.values(left @ kernel.factors(self.points[rows] - origin)[1].T)
        return out
