"""dSprites on a noisy background, in three channels, by two definitions."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drkm.datasets._dataset import Source, dataset
from drkm.datasets._factors import FactorDataset, Factors, Images
from drkm.datasets.dsprites import COMPACT, DRAWING, DSPRITES, LICENCE, load_dsprites
from drkm.validation import checks

DEFINITIONS = ("gaussian", "uniform")
#: version of the noise; raise it when the noise changes
NOISE = 1
_BLOCK = 256


class NoisyDSprites(FactorDataset):
    """White sprites on noise that is a function of the factors: the same factors always give the same pixels.

    Parameters
    ----------
    sprites : FactorDataset
        The images without noise.
    definition : {"gaussian", "uniform"}
        `"gaussian"` (the paper): each background value is replaced by a draw from N(0, 1).
        `"uniform"` (the common benchmark library): a draw from U[0, 1] is added to each value, and the
        sum is clipped at 1.
    seed : int
        Another seed gives other noise.
    """

    def __init__(self, sprites: FactorDataset, definition: str = "gaussian", seed: int = 0) -> None:
        if definition not in DEFINITIONS:
            raise ValueError(f"definition: expected 'gaussian' or 'uniform', got {definition!r}")
        super().__init__("noisy_dsprites", sprites.factor_names, sprites.factor_sizes, (*sprites.image_shape, 3))
        self.definition = definition
        self.seed = checks.integer("seed", seed, 0)
        if self.seed >= 1 << 64:
            raise ValueError(f"seed: expected an integer below 2**64, got {seed!r}")
        self._sprites = sprites

    def __len__(self) -> int:
        return len(self._sprites)

    def factors_at(self, rows: ArrayLike) -> Factors:
        """Return the factors of the images numbered `rows`, shape (n, n_factors)."""
        return self._sprites.factors_at(rows)

    def float_images_at(self, factors: ArrayLike) -> NDArray[np.float32]:
        """Return the images as float32 with white at 1 and unclipped Gaussian noise, shape (n, 64, 64, 3).

        uint8 images can only hold the part of N(0, 1) between 0 and 1; these hold all of it.
        """
        checked = self._check(factors)
        return self._float_images(checked, self._rows_of(checked))

    def _rows_of(self, factors: Factors) -> NDArray[np.int64]:
        return self._sprites._rows_of(factors)

    def _float_images(self, factors: Factors, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        images = np.empty((len(rows), *self.image_shape), dtype=np.float32)
        # A counter-based generator keyed by seed and place in the grid makes the noise a function of the
        # factors, also where the sprites come from a file with a part of the grid.
        keys = FactorDataset._rows_of(self, factors)
        for image, key in zip(images, keys.tolist(), strict=True):
            rng = np.random.Generator(np.random.Philox(key=(self.seed << 64) + key))
            if self.definition == "gaussian":
                rng.standard_normal(dtype=np.float32, out=image)
            else:
                rng.random(dtype=np.float32, out=image)
        images[self._sprites._images(factors, rows) > 0] = 1.0
        return images

    def _images(self, factors: Factors, rows: NDArray[np.int64]) -> Images:
        images = np.empty((len(rows), *self.image_shape), dtype=np.uint8)
        for start in range(0, len(rows), _BLOCK):
            block = slice(start, start + _BLOCK)
            values = np.clip(self._float_images(factors[block], rows[block]), 0.0, 1.0)
            images[block] = np.rint(255 * values)
        return images


@dataset(
    "noisy_dsprites",
    about="dSprites on a noisy background, 64×64×3; made from dsprites",
    licence=LICENCE,
    files=(DSPRITES,),
    compact=COMPACT,
    drawn=True,
    sources=(
        Source(
            "noisy_sprites",
            "drawn noisy dSprites",
            {"source": "rendered"},
            made=f"drawn {DRAWING}, noise {NOISE}",
            reads=False,
        ),
        Source("noisy_dsprites", "noisy dSprites", {"source": "file"}, made=f"noise {NOISE}"),
    ),
)
def load_noisy_dsprites(
    path: str | os.PathLike[str] | None = None,
    *,
    definition: str = "gaussian",
    seed: int = 0,
    source: str = "auto",
) -> NoisyDSprites:
    """Load dSprites with a noisy background, 64×64×3.

    Parameters
    ----------
    path, source
        Where the sprites come from, as in `drkm.datasets.load_dsprites`.
    definition : {"gaussian", "uniform"}
        How noise is added, see `NoisyDSprites`. As uint8, values are clipped to [0, 1], times 255.
    seed : int
        Seed of the noise.

    Returns
    -------
    NoisyDSprites
    """
    return NoisyDSprites(load_dsprites(path, source=source), definition, seed)
