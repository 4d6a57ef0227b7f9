"""Checkpoints: fits that can be resumed after their process was killed."""

from drkm.training.checkpoint.checkpoint import Checkpoint

__all__ = ["Checkpoint"]
