"""Imputation: missing values are filled by denoising with weighted components."""

from drkm.imputation.choice import filling_of, masked_entries
from drkm.imputation.filling import Filling
from drkm.imputation.imputer import Imputer

__all__ = ["Filling", "Imputer", "filling_of", "masked_entries"]
