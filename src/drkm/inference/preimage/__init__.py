"""Pre-images: points of the input space for projections onto components."""

from drkm.inference.preimage.search import PreImage, default_method, preimage, preimage_by, prepared_search

__all__ = ["PreImage", "default_method", "preimage", "preimage_by", "prepared_search"]
