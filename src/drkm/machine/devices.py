"""Kinds of devices: sizes that differ between a CPU and a GPU, and whether there may be a GPU."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

#: samples from which device="auto" is a GPU, if there is one
LEAST_ON_GPU = 2000
#: what the drivers of GPUs put there on Linux: NVIDIA's on servers, in WSL and on Jetson boards, and AMD's
DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/dev/nvgpu", "/dev/nvhost-gpu", "/dev/kfd")


def size_on(device: torch.device, sizes: Mapping[str, int]) -> int:
    """Return the size for a kind of device, "cpu" or "cuda"; other kinds have that of a CPU."""
    return sizes["cuda" if device.type == "cuda" else "cpu"]


def may_have_gpu() -> bool:
    """Whether torch could find a GPU; without torch, whose import takes long, by the drivers that there are."""
    return not sys.platform.startswith("linux") or any(Path(driver).exists() for driver in DRIVERS)
