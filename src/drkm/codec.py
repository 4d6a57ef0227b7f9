"""From points to codes and back with a trained model, a batch at a time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from drkm.components import Components, component_sums, components_of
from drkm.encoder import Encoding, ProjectionEncoder, StationaryEncoder
from drkm.gram import Cross
from drkm.preimage import PreImage, preimage
from drkm.rows import Rows
from drkm.sampling import CodeDensity
from drkm.threads import one_thread
from drkm.training import Trained

#: rows encoded or reconstructed at once; on a GPU more, as long as they are so many numbers at most
BATCH_ROWS = 1024
GPU_BATCH_ROWS, GPU_BATCH_NUMBERS = 1 << 14, 1 << 27
#: kernel values at once below which threads gain little: on 16 free cores 1.2 times in encoding and 1.4 times in
#: pre-images; on a busy machine, where they wait for each other, they cost ten times the time
SMALL_BATCH = 1 << 19


class Codec:
    """The codes of the training samples on the reported axes, and what gives other points theirs.

    Parameters
    ----------
    trained : Trained
    lam : sequence of float
        λ of every layer, which the paper's formulas need.
    encoder : {"stationary", "projection"}

    Attributes
    ----------
    codes : Tensor of shape (n, S)
    rotation : Tensor of shape (S, S)
        What takes the solver's basis to the reported axes, layer by layer.
    undetermined : int
        Directions of the codes that stationarity does not determine.
    """

    def __init__(self, trained: Trained, lam: Sequence[float], encoder: str):
        self.energy, H = trained.energy, trained.result.H
        self.rotation = torch.block_diag(*trained.rotation).to(H)
        self.codes = H @ self.rotation
        self.encoder: StationaryEncoder | ProjectionEncoder
        with self._threads(len(H)):
            if encoder == "stationary":
                self.encoder = StationaryEncoder(self.energy, H, trained.multipliers)
                self.undetermined = self.encoder.undetermined.shape[1]
            else:
                self.encoder = ProjectionEncoder(self.energy, H, lam)
                self.undetermined = 0
            self._cross = Cross(self.energy.kernels[0], self.energy.X)
            self._sums = component_sums(self.energy, self.codes)

    def encoded_samples(self) -> Tensor:
        """Return the codes of the training samples as the encoder gives them; the paper's formulas give them others."""
        if not isinstance(self.encoder, ProjectionEncoder):
            return self.codes
        first = self.energy.slices[0]
        scores = self.energy.first.matmul((self.codes @ self.rotation.T)[:, first].contiguous())
        return self.encoder.codes_of(scores) @ self.rotation

    def encode(self, points: Tensor | Rows, *, ambiguity: bool = False, out: Tensor | None = None) -> Encoding:
        """Return the codes of points, in `out` if it is given."""
        m = len(points)
        codes = self.codes.new_empty(m, self.codes.shape[1]) if out is None else out
        residual = self.codes.new_empty(m)
        ambiguous = torch.empty(m, dtype=torch.bool, device=residual.device) if ambiguity else None
        with self._threads(min(m, BATCH_ROWS)):
            for rows in self.batches(m):
                part = self.encoder.encode(self._seen(points[rows]), ambiguity=ambiguity)
                codes[rows], residual[rows] = part.codes @ self.rotation, part.residual
                if ambiguous is not None and part.ambiguous is not None:
                    ambiguous[rows] = part.ambiguous
        return Encoding(codes, residual, ambiguous)

    def reconstruct(
        self,
        points: Tensor | Rows,
        columns: Sequence[int],
        *,
        method: str | None = None,
        normalized: bool = True,
        **options: Any,
    ) -> PreImage:
        """Return pre-images of the projections of points on some components; options go to `drkm.preimage`."""
        with self._threads(len(points)):
            basis = self._components(columns, normalized)
            coordinates = self.codes.new_empty(len(points), basis.c)
            for rows in self.batches(len(points)):
                coordinates[rows] = basis.coordinates(self._seen(points[rows]))
            return preimage(basis, coordinates, method=self._method if method is None else method, **options)

    def decode(self, codes: Tensor) -> PreImage:
        """Return pre-images of points with these codes, whose scores in the first layer follow from stationarity."""
        first = self.energy.slices[0]
        with self._threads(len(codes)):
            scores = self.encoder.scores_of(codes @ self.rotation.T)
            basis = self._components(range(first.stop))
            # Scores in the solver's basis become scores on the reported axes.
            coordinates = basis.coordinates_from_scores(scores @ self.rotation[first, first])
            return preimage(basis, coordinates, method=self._method)

    @cached_property
    def density(self) -> CodeDensity:
        """What new codes are drawn from, fitted when first asked for."""
        return CodeDensity(self.encoded_samples())

    def batches(self, m: int) -> list[slice]:
        """Return slices of m rows that are handled together; a GPU needs many, or it waits for each of its launches."""
        size = BATCH_ROWS
        if self.codes.is_cuda:
            # A row of samples, of kernel values, or of a Hessian.
            longest = max(self.energy.n, self.energy.X.shape[1], self.codes.shape[1] ** 2)
            size = max(size, min(GPU_BATCH_ROWS, GPU_BATCH_NUMBERS // longest))
        return [slice(begin, min(begin + size, m)) for begin in range(0, m, size)]

    def _threads(self, rows: int) -> AbstractContextManager[None]:
        """Return what keeps work on some rows at once to one thread if it is little."""
        return one_thread(rows * self.energy.n < SMALL_BATCH)

    def _seen(self, points: Tensor) -> Tensor:
        """Return points as the first layer sees them."""
        k = self._cross(points)
        if not torch.isfinite(k).all():
            bad = int((~torch.isfinite(k)).any(dim=1).sum())
            raise ValueError(f"X: the kernel of layer 1 returns NaN or inf for {bad} of these points")
        return k

    def _components(self, columns: Sequence[int], normalized: bool = True) -> Components:
        columns = list(columns)
        sums = None if self._sums is None else self._sums[:, [*columns, -1]]
        return components_of(self.energy, self.codes[:, columns], sums, normalized=normalized)

    @property
    def _method(self) -> str:
        """How pre-images are found unless asked otherwise."""
        return "fixed-point" if self.energy.kernels[0].with_preimages.is_isotropic else "gradient"
