"""Pre-images: points of the input space for projections onto components."""

from drkm.inference.preimage.search import METHODS, PreImage, preimage, prepared_search

__all__ = ["METHODS", "PreImage", "preimage", "prepared_search"]
