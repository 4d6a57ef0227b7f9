"""How much memory there is, and the one sentence for what does not fit into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drkm.machine.system import TRIFLE, available_memory
from drkm.wording import in_bytes

if TYPE_CHECKING:
    import torch


class NotEnoughMemory(MemoryError):
    """A fit was asked for that cannot fit into memory; raised before anything large is allocated."""


def available(device: torch.device) -> int:
    """Return the bytes that can still be allocated on a device.

    On a CPU that is what `machine.available_memory` says; on a GPU the free memory with what torch holds in reserve.
    """
    if device.type == "cuda":
        import torch

        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + cached
    return available_memory()


def fits(needed: int, device: torch.device, share: float = 1.0) -> bool:
    """Whether that many bytes can be had, or are no more than a share of what can be had."""
    return needed <= TRIFLE or needed <= share * available(device)


def require(needed: int, device: torch.device, what: str, instead: str = "") -> None:
    """Raise `NotEnoughMemory` unless that many bytes can be had.

    Parameters
    ----------
    needed : int
        Bytes.
    device : torch.device
    what : str
        Who needs them, the beginning of the sentence.
    instead : str
        What would fit, the end of the sentence.
    """
    if fits(needed, device):
        return
    there, advice = in_bytes(available(device)), f"; {instead}" if instead else ""
    raise NotEnoughMemory(f"{what} needs {in_bytes(needed)} of memory, available on {device} are {there}{advice}")
