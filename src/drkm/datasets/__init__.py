"""Datasets: noisy plane curves, and images with known generative factors."""

from drkm.datasets.toy2d import make_half_circle, make_square, make_square_spiral, make_squares_spiral_ring

__all__ = [
    "make_half_circle",
    "make_square",
    "make_square_spiral",
    "make_squares_spiral_ring",
]
