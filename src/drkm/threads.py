"""How many threads torch works with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread(when: bool = True) -> Iterator[None]:
    """Keep torch to one thread for a while, or leave it alone."""
    if not when:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
