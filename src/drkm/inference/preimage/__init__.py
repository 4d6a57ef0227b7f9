"""From projections on components back to points: their pre-images."""

from drkm.inference.preimage.search import METHODS, PreImage, preimage, prepared_search

__all__ = ["METHODS", "PreImage", "preimage", "prepared_search"]
