"""Sizes that differ between a CPU and a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def size_on(device: torch.device, sizes: Mapping[str, int]) -> int:
    """Return the size for a kind of device, "cpu" or "cuda"; other kinds have that of a CPU."""
    return sizes["cuda" if device.type == "cuda" else "cpu"]
