"""Noisy points on plane curves: the denoising sets of the paper (Figures 1 to 3, Table 1)."""

from __future__ import annotations

import numpy as np

from drkm.datasets._random import RandomState, as_generator
from drkm.datasets.curves import Arc, Array, Curve, Piece, Segment, Spiral
from drkm.validation import checks

SPIRAL_RADIUS = 1.2
SPIRAL_TURNS = 2.0
RING_RADII = (1.2, 0.6)


def _square(centre: tuple[float, float]) -> list[Piece]:
    corners = np.asarray(centre) + np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    return [Segment(corners[i], corners[(i + 1) % 4]) for i in range(4)]


def square() -> Curve:
    """Return the outline of a square of side 2 at the origin."""
    return Curve([_square((0.0, 0.0))])


def half_circle() -> Curve:
    """Return the upper half of the unit circle, without its diameter."""
    return Curve([[Arc((0.0, 0.0), 1.0, 0.0, np.pi)]])


def square_spiral() -> Curve:
    """Return the square and, at (3, 0), a two-turn spiral of outer radius 1.2; half of the points each."""
    return Curve([_square((0.0, 0.0)), [Spiral((3.0, 0.0), SPIRAL_RADIUS, SPIRAL_TURNS)]])


def squares_spiral_ring() -> Curve:
    """Return two squares, the spiral and a ring of two circles; a quarter of the points each."""
    return Curve(
        [
            _square((-1.5, 1.5)),
            _square((1.5, -1.5)),
            [Spiral((1.5, 1.5), SPIRAL_RADIUS, SPIRAL_TURNS)],
            [Arc((-1.5, -1.5), radius) for radius in RING_RADII],
        ]
    )


CURVES = {
    "square": square,
    "half_circle": half_circle,
    "square_spiral": square_spiral,
    "squares_spiral_ring": squares_spiral_ring,
}


def _make(curve: Curve, n_samples: int, noise: float, random_state: RandomState) -> tuple[Array, Array]:
    noise = checks.number("noise", noise, positive=False)
    rng = as_generator(random_state)
    clean = curve.sample(n_samples, rng)
    return clean + noise * rng.standard_normal(clean.shape), clean


def make_square(n_samples: int = 1000, noise: float = 0.1, random_state: RandomState = None) -> tuple[Array, Array]:
    """Make noisy points on the outline of a square of side 2 at the origin.

    Parameters
    ----------
    n_samples : int
        Number of points.
    noise : float
        Standard deviation σ_n of the Gaussian noise added to each coordinate.
    random_state : int, numpy generator or None
        The same integer gives the same points.

    Returns
    -------
    noisy : array of shape (n_samples, 2)
    clean : array of shape (n_samples, 2)
        The points on the curve, uniform in arc length, that the noise was added to, row by row.
    """
    return _make(square(), n_samples, noise, random_state)


def make_half_circle(
    n_samples: int = 1000, noise: float = 0.1, random_state: RandomState = None
) -> tuple[Array, Array]:
    """Make noisy points on the upper half of the unit circle; parameters as in `make_square`."""
    return _make(half_circle(), n_samples, noise, random_state)


def make_square_spiral(
    n_samples: int = 1000, noise: float = 0.1, random_state: RandomState = None
) -> tuple[Array, Array]:
    """Make noisy points on a square and a spiral beside it (Figure 2), half of the points each.

    The spiral `r ∝ θ` makes two turns to its outer radius 1.2 around (3, 0). Parameters as in
    `make_square`.
    """
    return _make(square_spiral(), n_samples, noise, random_state)


def make_squares_spiral_ring(
    n_samples: int = 1000, noise: float = 0.1, random_state: RandomState = None
) -> tuple[Array, Array]:
    """Make noisy points on two squares, a spiral and a ring (Figure 3), a quarter of the points each.

    Squares of side 2 at (-1.5, 1.5) and (1.5, -1.5), the two-turn spiral at (1.5, 1.5), and a ring of two
    circles of radius 1.2 and 0.6 at (-1.5, -1.5). Parameters as in `make_square`.
    """
    return _make(squares_spiral_ring(), n_samples, noise, random_state)
