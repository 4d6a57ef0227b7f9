"""A reader of docs/results.md: the chapters and verdicts that the page shows."""

from __future__ import annotations

import re
from pathlib import Path

from drkm.experiments.report.blocks import SIGNS
from drkm.experiments.report.chapters import Chapter
from drkm.experiments.section import Claim, Section

PAGE = Path(__file__).parents[2] / "docs" / "results.md"


def read(text: str) -> list[Chapter]:
    """Return the chapters of a page that `listing` wrote."""
    verdicts = {f"{sign} {verdict.value}": verdict for verdict, sign in SIGNS.items()}
    chapters = []
    for part in re.split(r"^### ", text, flags=re.M)[1:]:
        title, _, rest = part.partition("\n")
        name, finished, expected = re.search(r"^`(\w+)`, (\d+) of (\d+) runs", rest, flags=re.M).groups()
        rows = re.findall(r"^\| (.*) \|$", rest, flags=re.M)[1:]
        cells = [[cell.replace("\\|", "|") for cell in re.split(r" (?<!\\)\| ", row)] for row in rows]
        claims = [
            Claim(text, "" if published == "–" else published, measured, verdicts[verdict], "")
            for text, published, measured, verdict in cells
        ]
        chapters.append(Chapter(Section(name, title, "", claims=claims), int(expected), int(finished)))
    return chapters
