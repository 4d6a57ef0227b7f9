"""The warning category for strange data."""

from __future__ import annotations


class StrangeDataWarning(UserWarning):
    """Warns of data from which a model can learn little, or about which it can say little."""
