"""Codes and pre-images of points with a fitted model, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from drkm.files.rows import Rows, in_memory
from drkm.fitted import FittedModel
from drkm.gram import Cross, Gram
from drkm.gram.cost import batch_rows, preimage_bytes
from drkm.inference.density import CodeDensity
from drkm.inference.encoder import Encoding, ProjectionEncoder, StationaryEncoder
from drkm.inference.first_gram import FirstGram, energy_of
from drkm.inference.kernel_projection import KernelProjection
from drkm.inference.preimage import PreImage, default_method, preimage, preimage_by, prepared_search
from drkm.inference.subspace import Components, component_lengths, component_sums, components_of
from drkm.machine.layout import slices
from drkm.machine.memory import NotEnoughMemory
from drkm.machine.threads import one_thread
from drkm.problem.energy import workload
from drkm.problem.shrinkage import Shrinkage
from drkm.strange_data import Familiarity
from drkm.training.record import without_samples

#: rows encoded or reconstructed at once on a GPU, and the maximum of numbers in such a batch
GPU_BATCH_ROWS, GPU_BATCH_NUMBERS = 1 << 14, 1 << 27
#: kernel values at once below which threads gain little: on 16 free cores 1.2 times in encoding and 1.4 times in
#: pre-images; on a busy machine, where they wait for each other, they take ten times as long
SMALL_BATCH = 1 << 19


class Inference:
    """Encodes, decodes and reconstructs points with a fitted model, on the reported axes.

    Parts that need K_1 or the features of all samples are computed when they are first needed.

    Parameters
    ----------
    fitted : FittedModel
    formed : Gram, optional
        The uncentred operator of the first layer, if a fit has already formed it. Sums over explicit features are
        computed from it immediately, together with the other processes if these share the samples; a matrix K_1 is
        freed.

    Attributes
    ----------
    codes : Tensor of shape (n, S)
    rotation : Tensor of shape (S, S)
        Rotation from the solver's basis to the reported axes, layer by layer.
    """

    def __init__(self, fitted: FittedModel, formed: Gram | None = None):
        self._given, H = fitted, fitted.H
        self.rotation = torch.block_diag(*fitted.rotation).to(H)
        self.codes = H @ self.rotation
        #: whether the warning was given that denoising with this model leaves the noise
        self.noise_told = False
        if fitted.is_shared:
            # While the other processes take part.
            _ = self._familiarity
        if formed is not None:
            self._gram = FirstGram(fitted, formed)
            if fitted.kernels[0].is_explicit:
                _ = self.encoder, self._sums, self._lengths
            if fitted.is_shared:
                _ = self.encoded_samples
            else:
                self._gram.release()

    @cached_property
    def fitted(self) -> FittedModel:
        """The record of the fit, with features in place of samples if files and pickles hold only these."""
        given = self._given
        if given.features is not None or not given.is_quickly_formed:
            return given
        return without_samples(given, energy_of(given).first_uncentered)[0]

    @cached_property
    def _gram(self) -> FirstGram:
        return FirstGram(self.fitted)

    @cached_property
    def _cross(self) -> Cross:
        return Cross(self.fitted.kernels[0], self.fitted.X)

    @cached_property
    def _familiarity(self) -> Familiarity:
        return Familiarity(self._given.kernels[0], self._given.X)

    @property
    def own_codes(self) -> Tensor:
        """Codes of the samples that this process passed to the fit."""
        own = self._given.own
        return self.codes if own is None else self.codes[own]

    @cached_property
    def encoder(self) -> StationaryEncoder | ProjectionEncoder:
        """The encoder of new points, in the solver's basis."""
        kind = StationaryEncoder if self.fitted.encoder == "stationary" else ProjectionEncoder
        with self._threads(len(self.codes)):
            return kind(self.fitted, self._gram)

    def projection(self) -> KernelProjection:
        """Return the codes of a one-layer model as an affine function of kernel values or features."""
        fitted = self.fitted
        if len(fitted.sizes) > 1:
            raise ValueError(
                f"n_components: to_torch and to_numpy are for one layer, got {len(fitted.sizes)} layers, whose codes "
                "are found by iteration for every point; use transform"
            )
        if fitted.is_shared and not fitted.kernels[0].is_explicit:
            raise ValueError(
                "gram: to_torch and to_numpy need all samples in one process, got samples that processes share"
            )
        weights, shift = self.encoder.first.affine()
        to_codes = self.encoder.code_matrix() @ self.rotation
        points = None if fitted.kernels[0].is_explicit else in_memory(fitted.X)
        return KernelProjection(fitted.kernels[0], points, weights @ to_codes, shift @ to_codes)

    @property
    def undetermined(self) -> int:
        """Number of directions of the codes that stationarity does not determine."""
        return self.encoder.undetermined.shape[1] if isinstance(self.encoder, StationaryEncoder) else 0

    @cached_property
    def _sums(self) -> Tensor | None:
        with self._threads(len(self.codes)):
            return component_sums(self.fitted, self._gram, self.codes)

    @cached_property
    def _lengths(self) -> Tensor | None:
        """Inner products of the columns of the codes over all samples, by which components are shrunk."""
        return None if self._sums is None else component_lengths(self.fitted, self.codes)

    @cached_property
    def encoded_samples(self) -> Tensor:
        """Codes of the training samples from the encoder; with the paper's formulas they differ from H."""
        if not isinstance(self.encoder, ProjectionEncoder):
            return self.codes
        first = self.fitted.slices[0]
        scores = self._gram.centered.matmul((self.codes @ self.rotation.T)[:, first].contiguous())
        return self.encoder.codes_of(scores) @ self.rotation

    def encode(self, points: Tensor | Rows, *, ambiguity: bool = False, out: Tensor | None = None) -> Encoding:
        """Encode points, into `out` if it is given."""
        m = len(points)
        codes = self.codes.new_empty(m, self.codes.shape[1]) if out is None else out
        residual = self.codes.new_empty(m)
        ambiguous = torch.empty(m, dtype=torch.bool, device=residual.device) if ambiguity else None
        strange = torch.empty(m, dtype=torch.bool, device=residual.device)
        unbounded = torch.zeros_like(strange)
        batches = self.batches(m)
        with self._threads(batches[0].stop if batches else 0):
            for rows in batches:
                batch = points[rows]
                seen = self._seen(batch)
                strange[rows] = self._familiarity.strange(batch, seen)
                part = self.encoder.encode(seen, ambiguity=ambiguity)
                codes[rows], residual[rows] = part.codes @ self.rotation, part.residual
                if ambiguous is not None and part.ambiguous is not None:
                    ambiguous[rows] = part.ambiguous
                if part.unbounded is not None:
                    unbounded[rows] = part.unbounded
        return Encoding(codes, residual, ambiguous, strange, unbounded)

    def reconstruct(
        self,
        points: Tensor | Rows,
        columns: Sequence[int],
        *,
        method: str | None = None,
        normalized: bool = True,
        shrink: Shrinkage | None = None,
        **options: Any,
    ) -> PreImage:
        """Return pre-images of the projections of points onto some components; options go to `preimage`."""
        if shrink is not None and not normalized:
            raise ValueError("shrink: the projection of the paper, normalized=False, is not shrunk, got both")
        method = self._method if method is None else method
        with self._threads(len(points)):
            basis = self._components(columns, self._make_room(method), normalized, shrink)
            coordinates = self.codes.new_empty(len(points), basis.c)
            strange = torch.empty(len(points), dtype=torch.bool, device=coordinates.device)
            for rows in self.batches(len(points)):
                batch = points[rows]
                seen = self._seen(batch)
                strange[rows] = self._familiarity.strange(batch, seen)
                coordinates[rows] = basis.coordinates(seen)
            return replace(preimage(basis, coordinates, method=method, **options), strange=strange)

    def squared_distances(self, points: Tensor, others: Tensor | Rows) -> Tensor:
        """Return the squared distances between corresponding rows of points and others, which may be in a file."""
        batches = self.batches(len(points))
        return torch.cat([(points[rows] - others[rows]).square().sum(dim=1) for rows in batches])

    def decode(self, codes: Tensor, shrink: Shrinkage | None = None) -> PreImage:
        """Return pre-images for codes, whose scores in the first layer follow from stationarity."""
        with self._threads(len(codes)):
            basis = self._basis(shrink)
            return preimage(basis, self._coordinates(codes, basis), method=self._method)

    def decoder(self, shrink: Shrinkage | None = None) -> Callable[[Tensor], PreImage]:
        """Return `decode` for repeated calls with few codes: what the search needs is computed once and kept."""
        basis = self._basis(shrink)
        search = prepared_search(basis, self._method)

        def decode(codes: Tensor) -> PreImage:
            with self._threads(len(codes)):
                return preimage_by(search, basis, self._coordinates(codes, basis))

        return decode

    def _basis(self, shrink: Shrinkage | None) -> Components:
        return self._components(range(self.fitted.slices[0].stop), self._make_room(self._method), shrink=shrink)

    def _coordinates(self, codes: Tensor, basis: Components) -> Tensor:
        """Return the projections with these codes."""
        first = self.fitted.slices[0]
        scores = self.encoder.scores_of(codes @ self.rotation.T)
        # Scores in the solver's basis become scores on the reported axes.
        return basis.coordinates_from_scores(scores @ self.rotation[first, first])

    @cached_property
    def density(self) -> CodeDensity:
        """The density from which new codes are drawn, fitted when it is first needed."""
        return CodeDensity(self.encoded_samples)

    def batches(self, m: int) -> list[slice]:
        """Return slices of m rows to process together; a GPU needs large batches, or it waits for its launches."""
        n, components = self.fitted.n, self.codes.shape[1]
        size = batch_rows(n, components)
        if self.codes.is_cuda:
            # A row of samples, of kernel values, or of a Hessian.
            longest = max(n, self.fitted.X.shape[1], components**2)
            size = max(size, min(GPU_BATCH_ROWS, GPU_BATCH_NUMBERS // longest))
        return slices(m, size)

    def _threads(self, rows: int) -> AbstractContextManager[None]:
        """Return a context that limits work on a few rows to one thread if it is little."""
        return one_thread(rows * self.fitted.n < SMALL_BATCH)

    def _make_room(self, method: str) -> Tensor | Rows:
        """Keep pre-images within the memory budget of the fit; return the samples, in memory if they fit."""
        fitted = self.fitted
        work = workload(fitted.X, fitted.kernels, fitted.sizes)

        def room(from_file: bool) -> float | None:
            return fitted.strategy.left(work, preimage_bytes(work, method, from_file=from_file), "pre-images")

        try:
            left, samples = room(False), self._samples_in_memory()
        except NotEnoughMemory:
            if not isinstance(fitted.X, Rows):
                raise
            left, samples = room(True), fitted.X
        if left is not None:
            self._gram.uncentered.keep_at_most(left)
        return samples

    def _samples_in_memory(self) -> Tensor | Rows:
        """Return the samples for pre-images: in memory, unless explicit features need only a few of them."""
        return self.fitted.X if self.fitted.kernels[0].is_explicit else in_memory(self.fitted.X)

    def _seen(self, points: Tensor) -> Tensor:
        """Return kernel values or features of points in the first layer."""
        k = self._cross(points)
        if not torch.isfinite(k).all():
            bad = int((~torch.isfinite(k)).any(dim=1).sum())
            raise ValueError(f"X: the kernel of layer 1 returns NaN or inf for {bad} of these points")
        return k

    def _components(
        self,
        columns: Sequence[int],
        samples: Tensor | Rows,
        normalized: bool = True,
        shrink: Shrinkage | None = None,
    ) -> Components:
        columns = list(columns)
        sums = None if self._sums is None else self._sums[:, [*columns, -1]]
        lengths = None if self._lengths is None else self._lengths[columns][:, columns]
        H = self.codes[:, columns]
        return components_of(self.fitted, self._gram, H, sums, lengths, samples, normalized=normalized, shrink=shrink)

    @property
    def _method(self) -> str:
        """The default method for pre-images."""
        return default_method(self.fitted.kernels[0])
