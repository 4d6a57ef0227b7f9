"""Conversion of results to JSON values."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any


def plain(value: Any) -> Any:
    """Convert to dicts, lists, texts and numbers; numbers that are not finite become None."""
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    # Numbers and arrays of numpy and torch, without importing either.
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
