"""Owners of leases on runs, and whether they are still alive."""

from __future__ import annotations

import os
import platform
import secrets

#: seconds without renewal after which a runner loses its runs
LEASE_SECONDS = 60.0


def new_owner() -> str:
    """Return a unique name for a runner: the machine, the process, and a random token."""
    return f"{_machine()} {os.getpid()} {secrets.token_hex(4)}"


def is_dead(owner: str) -> bool:
    """Whether a runner is known to be dead: it ran on this machine and its process is gone.

    Without this check, runs of a killed runner would have to wait for the end of its lease. If its process number has
    been reused, they do wait.
    """
    machine, _, rest = owner.partition(" ")
    process = rest.partition(" ")[0]
    # Other systems have no harmless way to ask.
    if os.name != "posix" or machine != _machine() or not process.isdecimal():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _machine() -> str:
    """Return an identifier of the machine or container, within which process numbers are unique."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return f"{platform.node()}/{space}".replace(" ", "_")
