"""The command lines in README and docs, and how the command line parses them."""

from __future__ import annotations

import re
from pathlib import Path

import typer

from drkm.cli.app import app

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/metrics/*.md")])
#: words that the reader is meant to replace
PLACEHOLDER = re.compile(r"…|\||\[|\b[A-Z]{3,}\b|\bN\b|\bor\b| -o$")
COMMANDS = typer.main.get_command(app)


def commands(page: Path, program: str) -> list[str]:
    """Return the commands that a page shows, on separate lines or within a sentence, without comments."""
    text = re.sub(r" *\\\n +", " ", page.read_text(encoding="utf-8"))
    shown = re.finditer(rf"^ {{4}}(?:\$ )?{program}([ .].*)$|(?<!`)`{program}([ .][^`]+)`", text, re.MULTILINE)
    words = [match[1] or re.sub(r"\s*\n\s*", " ", match[2]) for match in shown]
    found = [re.split(r"\s#|\s{3,}", each)[0].strip() for each in words]
    # `drkm.select` is a name of the package.
    return [each for each in found if program != "drkm" or not each.startswith(".")]


def parsed(words: list[str]) -> None:
    """Parse words as the command line does, without running them."""
    command, context = COMMANDS, None
    while words and not words[0].startswith("-"):
        _, command, words = command.resolve_command(context or typer.Context(command), words)
        if not hasattr(command, "resolve_command"):
            break
    try:
        command.make_context(command.name, list(words))
    except Exception as end:
        # --help exits while it is parsed.
        if type(end).__name__ != "Exit":
            raise
