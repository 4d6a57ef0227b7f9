"""Available memory, and the error for work that does not fit into it.

How a fit uses the memory is decided elsewhere: `drkm.gram.cost` estimates what a fit needs, and `drkm.gram.tiled`
and `drkm.gram.sharded` what is left for tiles.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from drkm.wording import in_bytes

if TYPE_CHECKING:
    import torch

PROC, CGROUP = Path("/proc"), Path("/sys/fs/cgroup")
#: version 1 control groups without a limit report at least this
UNLIMITED = 1 << 60
#: requests up to this many bytes are granted without asking the system
TRIFLE = 1 << 25


class NotEnoughMemory(MemoryError):
    """Work does not fit into memory; raised before anything large is allocated."""


def available(device: torch.device | str) -> int:
    """Return the bytes that can still be allocated on a device.

    On a CPU this is `available_on_host`; on a GPU the free memory plus the memory that torch holds in reserve.
    """
    if str(device).startswith("cuda"):
        import torch

        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + cached
    return available_on_host()


def fits(needed: int, device: torch.device | str, share: float = 1.0) -> bool:
    """Whether that many bytes are available, or are at most a share of what is available."""
    return needed <= TRIFLE or needed <= share * available(device)


def require(needed: int, device: torch.device | str, what: str, instead: str = "") -> None:
    """Raise `NotEnoughMemory` unless that many bytes are available.

    Parameters
    ----------
    needed : int
        Bytes.
    device : torch.device or str
    what : str
        What needs them: the beginning of the error message.
    instead : str
        What would fit: the end of the error message.
    """
    if fits(needed, device):
        return
    there, advice = in_bytes(available(device)), f"; {instead}" if instead else ""
    raise NotEnoughMemory(f"{what} needs {in_bytes(needed)} of memory, available on {device} are {there}{advice}")


def available_on_host() -> int:
    """Return the bytes that can still be allocated on the host.

    This is the minimum of what the system has available, what the process's control group (a container's limit) leaves,
    and what a limit of the process itself (`ulimit -v`) leaves.
    """
    return min(_system(), _control_group(), _process())


def _system() -> int:
    """Return the memory that the system can provide without swapping, or all memory if it does not report that."""
    try:
        for line in (PROC / "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return UNLIMITED


def _control_group() -> int:
    """Return what the control groups of this process leave: limit minus use, not counting the file cache."""
    room = [
        _room(folder, limit, used)
        for folder in _group_folders()
        for limit, used in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes"))
    ]
    return min(room, default=UNLIMITED)


def _group_folders() -> list[Path]:
    """Return the folders of this process's memory groups, up to the root, for both versions of control groups."""
    folders = {CGROUP, CGROUP / "memory"}
    try:
        lines = (PROC / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return sorted(folders)
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers not in ("", "memory"):
            continue
        root = CGROUP / controllers if controllers else CGROUP
        inner = root / path.lstrip("/")
        folders |= {inner, *(parent for parent in inner.parents if root in parent.parents)}
    return sorted(folders)


def _room(folder: Path, limit: str, used: str) -> int:
    try:
        most, now = int((folder / limit).read_text()), int((folder / used).read_text())
    except (OSError, ValueError):  # no such group, or "max"
        return UNLIMITED
    if most >= UNLIMITED:
        return UNLIMITED
    return max(0, most - now + _reclaimable(folder))


def _reclaimable(folder: Path) -> int:
    """Return the bytes of cached files that a group can reclaim."""
    try:
        facts = dict(line.split()[:2] for line in (folder / "memory.stat").read_text().splitlines())
        return int(facts.get("inactive_file", 0))
    except (OSError, ValueError):
        return 0


def _process() -> int:
    """Return what the address space limit of this process leaves."""
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most == resource.RLIM_INFINITY:
            return UNLIMITED
        pages = int((PROC / "self" / "statm").read_text().split()[0])
    except (ImportError, OSError, ValueError, IndexError):  # no such limit, or the use is unknown
        return UNLIMITED
    return max(0, most - pages * resource.getpagesize())
