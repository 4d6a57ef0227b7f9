"""Who holds a lease on a run, and whether that runner can still be alive."""

from __future__ import annotations

import os
import platform
import secrets

#: seconds after which a runner that was not heard of has lost its runs
LEASE_SECONDS = 60.0


def new_owner() -> str:
    """Return a name for a runner: the machine, the process, and a word that no other runner has."""
    return f"{_machine()} {os.getpid()} {secrets.token_hex(4)}"


def is_dead(owner: str) -> bool:
    """Whether a runner is known to have died: one of this machine whose process is gone.

    Without this, runs of a killed runner would have to wait for the end of its lease. A number that another
    process has got since only means to wait.
    """
    machine, _, rest = owner.partition(" ")
    process = rest.partition(" ")[0]
    # On other systems there is no harmless way to ask.
    if os.name != "posix" or machine != _machine() or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _machine() -> str:
    """Return what tells apart machines, and containers on one, whose process numbers mean different processes."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return f"{platform.node()}/{space}".replace(" ", "_")
