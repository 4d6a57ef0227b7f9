"""Gaps in data, filled by what cleaning with weighed components puts there."""

from drkm.imputation.imputer import Imputer

__all__ = ["Imputer"]
