"""What warnings about data are called, so that they can be told from others."""

from __future__ import annotations


class StrangeDataWarning(UserWarning):
    """Data from which a model can learn little, or of which it can say little."""
