"""Fits that survive the end of their process."""

from drkm.training.checkpoint.checkpoint import Checkpoint

__all__ = ["Checkpoint"]
