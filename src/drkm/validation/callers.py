"""The line that a warning names."""

from __future__ import annotations

import sys


def level_of_caller() -> int:
    """Return the `stacklevel` with which a warning of the calling function names the first line outside `drkm`."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("drkm."):
        frame, level = frame.f_back, level + 1
    return level
