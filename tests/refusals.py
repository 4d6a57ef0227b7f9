"""What every refusal has in common."""

from __future__ import annotations

import re

import pytest


def refused(call, error, *words: str) -> str:
    """Assert that the call raises exactly this kind of error with one sentence that holds all the words."""
    with pytest.raises(error, match=r"\S") as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 300
    assert not re.search(r"[.!?] +[A-Z]", message), f"more than one sentence: {message}"
    for word in words:
        assert word.lower() in message.lower(), f"{word!r} is not in {message!r}"
    return message
