"""Pre-images: points of the input space for projections onto components."""

from drkm.inference.preimage.search import PreImage, preimage, prepared_search

__all__ = ["PreImage", "preimage", "prepared_search"]
