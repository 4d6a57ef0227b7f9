"""One dialect and one set of words in the source: the glossary is in CONTRIBUTING.md."""

import re
from pathlib import Path

import pytest

import drkm

FILES = sorted(Path(drkm.__file__).parent.rglob("*.py"))
#: what the glossary replaces, as far as a search can tell it from plain English
AVOIDED = "|".join(
    [
        r"rests on|looked at once|named rightly|gets? one sentence|\bfor people\b|\bweighed\b|memory there is",
        r"\b[Oo]ne a (layer|point|start|sample|component)\b",
        r"\b[Oo]ne (row|column|line|number|integer) an? [a-z]+",
    ]
)


def found(pattern: str) -> list[str]:
    texts = {file: file.read_text(encoding="utf-8") for file in FILES}
    return [f"{file.name}: {match[0]}" for file, text in texts.items() for match in re.finditer(pattern, text)]


@pytest.mark.parametrize("pattern", [r"``[^`\n]+``", r":(func|class|meth|mod):`"], ids=["double backticks", "roles"])
def test_code_in_docstrings_stands_in_single_backticks(pattern):
    assert found(pattern) == []


def test_words_that_the_glossary_replaces_are_gone():
    assert found(AVOIDED) == []
