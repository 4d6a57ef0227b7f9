"""Warnings about strange data: samples from which a fit learns little, and new points unlike all samples."""

from drkm.strange_data.new_points import Familiarity, warn_of_strangers
from drkm.strange_data.samples import complaints
from drkm.strange_data.warning import StrangeDataWarning, level_of_caller

__all__ = ["Familiarity", "StrangeDataWarning", "complaints", "level_of_caller", "warn_of_strangers"]
