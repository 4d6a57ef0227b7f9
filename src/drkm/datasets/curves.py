"""Plane curves by arc length, with the exact distance of any point to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drkm.datasets._random import RandomState, as_generator
from drkm.validation import checks

Array = NDArray[np.float64]

# The distance to a spiral compares a point with every grid angle: this bounds that table to a few MiB.
_BLOCK = 256


class Piece(Protocol):
    """A smooth piece of curve, parametrised by its own arc length."""

    length: float

    def points_at(self, s: Array) -> Array:
        """Return the points at arc lengths `s` in [0, length], shape (len(s), 2)."""
        ...

    def distance(self, points: Array) -> Array:
        """Return the distance of each point to the piece, shape (len(points),)."""
        ...


class Segment:
    """The straight line from `start` to `stop`."""

    def __init__(self, start: ArrayLike, stop: ArrayLike) -> None:
        self.start = np.asarray(start, dtype=float)
        self.stop = np.asarray(stop, dtype=float)
        self.length = float(np.hypot(*(self.stop - self.start)))
        self._direction = (self.stop - self.start) / self.length

    def points_at(self, s: Array) -> Array:
        """Return the points at arc lengths `s` from `start`."""
        return self.start + np.multiply.outer(s, self._direction)

    def distance(self, points: Array) -> Array:
        """Return the distance of each point to the segment."""
        along = np.clip((points - self.start) @ self._direction, 0.0, self.length)
        return np.hypot(*(points - self.points_at(along)).T)


class Arc:
    """The arc of a circle from angle `start`, counter-clockwise over `sweep` <= 2π radians."""

    def __init__(self, centre: ArrayLike, radius: float, start: float = 0.0, sweep: float = 2 * np.pi) -> None:
        self.centre = np.asarray(centre, dtype=float)
        self.radius = float(radius)
        self.start = float(start)
        self.sweep = float(sweep)
        self.length = self.radius * self.sweep

    def points_at(self, s: Array) -> Array:
        """Return the points at arc lengths `s` from the start angle."""
        angle = self.start + s / self.radius
        return self.centre + self.radius * np.stack([np.cos(angle), np.sin(angle)], axis=-1)

    def distance(self, points: Array) -> Array:
        """Return the distance of each point to the arc: radial where the arc faces it, else to an end."""
        x, y = (points - self.centre).T
        angle = np.mod(np.arctan2(y, x) - self.start, 2 * np.pi)
        radial = np.abs(np.hypot(x, y) - self.radius)
        ends = self.points_at(np.array([0.0, self.length]))
        to_ends = np.hypot(*np.moveaxis(points[:, None] - ends, -1, 0)).min(axis=1)
        return np.where(angle <= self.sweep, radial, to_ends)


class Spiral:
    """The Archimedean spiral `r = a·θ` for θ in [0, 2π·turns], with `a` set by the outer radius."""

    def __init__(self, centre: ArrayLike, radius: float, turns: float = 2.0) -> None:
        self.centre = np.asarray(centre, dtype=float)
        self.end = 2 * np.pi * turns
        self.pitch = float(radius) / self.end
        self.length = float(self._arc_length(np.array(self.end)))
        self._grid = np.linspace(0.0, self.end, 1 + int(np.ceil(256 * turns)))

    def _arc_length(self, theta: Array) -> Array:
        return 0.5 * self.pitch * (theta * np.sqrt(1 + theta**2) + np.arcsinh(theta))

    def _at_angle(self, theta: Array) -> Array:
        return self.centre + self.pitch * theta[..., None] * np.stack([np.cos(theta), np.sin(theta)], axis=-1)

    def points_at(self, s: Array) -> Array:
        """Return the points at arc lengths `s` from the centre."""
        # The arc length is convex in θ and at least a·θ²/2, so Newton from above is monotone.
        theta = np.sqrt(2 * np.asarray(s, dtype=float) / self.pitch)
        for _ in range(50):
            step = (self._arc_length(theta) - s) / (self.pitch * np.sqrt(1 + theta**2))
            theta = theta - step
            if np.all(np.abs(step) <= 1e-14 * (1 + theta)):
                break
        return self._at_angle(np.clip(theta, 0.0, self.end))

    def distance(self, points: Array) -> Array:
        """Return the distance of each point to the spiral, by Newton from every local minimum of a grid."""
        points = np.asarray(points, dtype=float)
        blocks = [self._distance(points[i : i + _BLOCK]) for i in range(0, len(points), _BLOCK)]
        return np.concatenate(blocks) if blocks else np.empty(0)

    def _distance(self, points: Array) -> Array:
        x, y = (points - self.centre).T
        rho, phi = np.hypot(x, y), np.arctan2(y, x)
        a, grid = self.pitch, self._grid
        curve = self._at_angle(grid) - self.centre
        # ‖p - c(θ)‖² less the constant ‖p‖²: one matrix product instead of n × grid cosines.
        squared = (a * grid) ** 2 - 2 * np.stack([x, y], axis=1) @ curve.T
        padded = np.pad(squared, ((0, 0), (1, 1)), constant_values=np.inf)
        row, node = np.nonzero((squared <= padded[:, :-2]) & (squared <= padded[:, 2:]))
        # Refine every local minimum, not only the best node: two turns can be equally close to within a grid step.
        theta, r, p = grid[node], rho[row], phi[row]
        low, high = grid[np.maximum(node - 1, 0)], grid[np.minimum(node + 1, len(grid) - 1)]
        for _ in range(60):
            sine, cosine = np.sin(theta - p), np.cos(theta - p)
            slope = a * theta - r * cosine + r * theta * sine
            curvature = a + 2 * r * sine + r * theta * cosine
            low, high = np.where(slope < 0, theta, low), np.where(slope > 0, theta, high)
            with np.errstate(divide="ignore", invalid="ignore"):
                newton = theta - slope / curvature
            inside = (curvature > 0) & (newton >= low) & (newton <= high)
            update = np.where(slope == 0, theta, np.where(inside, newton, 0.5 * (low + high)))
            moved = np.abs(update - theta)
            theta = update
            if np.all(moved <= 1e-12 * (1 + theta)):
                break
        # Squared distances lose digits near the curve: the last step works on differences.
        refined = np.hypot(*(points[row] - self._at_angle(theta)).T)
        best = np.full(len(points), np.inf)
        np.minimum.at(best, row, refined)
        return best


class Curve:
    """A plane curve of several parts, each with its share of the points.

    Within a part, points are uniform in arc length; across parts the shares are fixed numbers, so that a
    short square and a long spiral can get half of the points each.

    Parameters
    ----------
    parts : sequence of sequences of pieces
        Each part is a sequence of `Segment`, `Arc` or `Spiral`.
    shares : sequence of float or None
        The fraction of points of each part; equal by default.
    """

    def __init__(self, parts: Sequence[Sequence[Piece]], shares: Sequence[float] | None = None) -> None:
        self.parts = tuple(tuple(part) for part in parts)
        weights = np.ones(len(self.parts)) if shares is None else np.asarray(shares, dtype=float)
        if len(self.parts) == 0 or weights.shape != (len(self.parts),) or not np.all(weights > 0):
            raise ValueError(f"shares: expected a positive number for each of {len(self.parts)} parts, got {shares!r}")
        self.shares = weights / weights.sum()
        self._pieces = [piece for part in self.parts for piece in part]
        self._starts = np.concatenate([[0.0], np.cumsum([piece.length for piece in self._pieces])])
        self.part_lengths = np.array([sum(piece.length for piece in part) for part in self.parts])
        self._piece_density = np.repeat(self.shares / self.part_lengths, [len(part) for part in self.parts])

    @property
    def length(self) -> float:
        """Total arc length of all parts."""
        return float(self._starts[-1])

    def _locate(self, s: ArrayLike) -> tuple[Array, NDArray[np.intp]]:
        s = np.asarray(s, dtype=float)
        slack = 1e-12 * self.length
        if s.ndim != 1 or not np.all((s >= -slack) & (s <= self.length + slack)):
            raise ValueError(f"s: expected a 1-d array of arc lengths between 0 and {self.length:.6g}")
        index = np.searchsorted(self._starts, s, side="right") - 1
        return s, np.clip(index, 0, len(self._pieces) - 1)

    def points_at(self, s: ArrayLike) -> Array:
        """Return the points at arc lengths `s`, the parts laid end to end.

        Parameters
        ----------
        s : array of shape (n,)
            Arc lengths between 0 and `length`.

        Returns
        -------
        array of shape (n, 2)
        """
        s, index = self._locate(s)
        points = np.empty((len(s), 2))
        for i in np.unique(index):
            here = index == i
            local = np.clip(s[here] - self._starts[i], 0.0, self._pieces[i].length)
            points[here] = self._pieces[i].points_at(local)
        return points

    def density_at(self, s: ArrayLike) -> Array:
        """Return the density of the points per unit of arc length at `s`; it integrates to 1."""
        _, index = self._locate(s)
        return self._piece_density[index]

    def quadrature(self, n_nodes: int = 1000) -> tuple[Array, Array]:
        """Return nodes on the curve and weights for integrals over the points' distribution.

        Each piece gets midpoint nodes in proportion to its length, at least one.

        Returns
        -------
        nodes : array of shape (about n_nodes, 2)
        weights : array of the same length, with sum 1
        """
        n_nodes = checks.integer("n_nodes", n_nodes, 1)
        nodes, weights = [], []
        for piece, density in zip(self._pieces, self._piece_density, strict=True):
            m = max(1, round(n_nodes * piece.length / self.length))
            nodes.append(piece.points_at((np.arange(m, dtype=np.float64) + 0.5) * (piece.length / m)))
            weights.append(np.full(m, density * piece.length / m))
        return np.concatenate(nodes), np.concatenate(weights)

    def sample(self, n_samples: int, random_state: RandomState = None) -> Array:
        """Draw points, uniform in arc length within a part, in random order; each part gets its exact share.

        Returns
        -------
        array of shape (n_samples, 2)
        """
        n_samples = checks.integer("n_samples", n_samples, 1)
        rng = as_generator(random_state)
        bounds = np.floor(np.concatenate([[0.0], np.cumsum(self.shares)]) * n_samples + 0.5).astype(int)
        ends = np.cumsum(self.part_lengths)
        starts = ends - self.part_lengths
        s = [starts[k] + self.part_lengths[k] * rng.random(bounds[k + 1] - bounds[k]) for k in range(len(self.parts))]
        # Shuffled, so that the first rows are a fair sample too: callers split sets by slicing.
        return self.points_at(rng.permutation(np.minimum(np.concatenate(s), self.length)))

    def distance(self, points: ArrayLike) -> Array:
        """Return the exact distance of each point to the nearest point of the curve.

        Parameters
        ----------
        points : array of shape (n, 2)

        Returns
        -------
        array of shape (n,)
        """
        points = np.asarray(points, dtype=float)
        if points.ndim != 2 or points.shape[1] != 2:
            raise ValueError(f"points: expected an array of shape (n, 2), got shape {points.shape}")
        if not np.all(np.isfinite(points)):
            raise ValueError("points: expected finite numbers, got NaN or infinity")
        best = np.full(len(points), np.inf)
        for piece in self._pieces:
            np.minimum(best, piece.distance(points), out=best)
        return best
