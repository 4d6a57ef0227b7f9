"""Numbers as people say them, and text as terminals may show it."""

from __future__ import annotations

import shutil
import sys
import textwrap
import unicodedata

#: embeddings, overrides and isolates of Unicode's bidirectional algorithm, which reorder what stands around them
_TURNS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def counted(count: int, noun: str) -> str:
    """Return a number of things in words."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def duration(seconds: float) -> str:
    """Return a time as people say it: 0.03 s, 8.2 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 1:
        return f"{seconds:.1g} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def in_bytes(number: float) -> str:
    """Return a number of bytes in the largest decimal unit that leaves it above one."""
    return f"{scaled(number)}B"


def scaled(number: float) -> str:
    """Return a number of whatever follows it, with the prefix of the largest decimal unit that leaves it above one."""
    for unit in ("", "k", "M", "G", "T", "P"):
        if number < 999.5 or unit == "P":
            return f"{number:.3g} {unit}"
        number /= 1000
    raise AssertionError


def for_terminal(text: str) -> str:
    """Return text whose long lines go on at a word, indented, where stdout is a terminal; else as it is."""
    if sys.stdout is None or not sys.stdout.isatty():
        return text
    width = shutil.get_terminal_size().columns
    whole = textwrap.TextWrapper(
        width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False, replace_whitespace=False
    )
    return "\n".join(whole.fill(line) for line in text.splitlines())


def shown(text: str) -> str:
    """Return text whose control characters are visible, because a terminal obeys them, whoever wrote them.

    Ends of lines and tabs stay. Others become the escapes of JSON, so that JSON stays what it is.
    """
    return "".join(f"\\u{ord(letter):04x}" if _is_obeyed(letter) else letter for letter in text)


def _is_obeyed(letter: str) -> bool:
    control = unicodedata.category(letter) in ("Cc", "Cs") and letter not in "\n\t"
    return control or unicodedata.bidirectional(letter) in _TURNS
