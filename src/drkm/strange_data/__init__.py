"""Warnings about strange data: samples from which a fit learns little, and new points unlike all samples."""

from drkm.strange_data.new_points import Familiarity, warn_of_strangers
from drkm.strange_data.samples import complaints
from drkm.strange_data.warning import StrangeDataWarning

__all__ = ["Familiarity", "StrangeDataWarning", "complaints", "warn_of_strangers"]
