"""The line that a warning names."""

from __future__ import annotations

import sys

#: packages that lie between a caller and the function that warns
PACKAGES = ("drkm", "sklearn", "joblib")


def level_of_caller() -> int:
    """Return the `stacklevel` with which a warning of the calling function names the caller's own line.

    That is the first line outside `PACKAGES`: a fit may be called by `fit_predict` of a base class or by a pipeline.
    """
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in PACKAGES:
        frame, level = frame.f_back, level + 1
    return level
