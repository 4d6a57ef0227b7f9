"""The parts of a chapter: claims, figures, tables, settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from drkm.experiments.report.pictures import picture
from drkm.experiments.section import Claim, Figure, ResultTable, Verdict
from drkm.pages.markup import Markup, element, together

#: a sign beside the word, so that neither colour nor reading is needed to tell verdicts apart
SIGNS = {Verdict.HELD: "✓", Verdict.FAILED: "✗", Verdict.UNDECIDED: "?"}
CLASSES = {Verdict.HELD: "held", Verdict.FAILED: "failed", Verdict.UNDECIDED: "undecided"}
COLUMNS = ("Claim", "Published", "Ours", "Verdict", "Why")
#: tables with more rows scroll inside their box
TALL = 20
#: columns of text no longer than this stay on one line
SHORT = 34


def badge(verdict: Verdict, *, short: bool = False) -> Markup:
    """Return a verdict as sign and word; a short one shows the sign and tells the word to who asks."""
    sign = element("span", SIGNS[verdict], aria_hidden="true")
    word = element("span", verdict.value, class_="spoken" if short else None)
    title = verdict.value if short else None
    return element("span", sign, " ", word, class_=f"verdict {CLASSES[verdict]}", title=title)


def prose(text: str) -> Markup:
    """Return plain text with the indices of letters, as in σ_n or s_1, set as such."""
    # A split at two groups gives text, letter, index, text, and so on.
    pieces = re.split(r"\b([^\W\d_])_([A-Za-z0-9])(?![A-Za-z0-9_])", text)
    plain, letters, indices = pieces[::3], pieces[1::3], pieces[2::3]
    indexed = [together(letter, element("sub", index)) for letter, index in zip(letters, indices, strict=True)]
    return together(plain[0], zip(indexed, plain[1:], strict=True))


def paragraphs(text: str) -> Markup:
    """Return plain text as paragraphs, which blank lines separate."""
    return together(element("p", prose(part.strip())) for part in re.split(r"\n\s*\n", text) if part.strip())


def claims_block(claims: Sequence[Claim], name: str) -> Markup | None:
    """Return the claims as a table, which becomes a stack of cards where there is no room for one."""
    if not claims:
        return None
    # Roles are spelled out because a table that is laid out otherwise loses them in some browsers.
    heads = [element("th", column, scope="col", role="columnheader") for column in COLUMNS]
    return together(
        element("h3", "Claims", id=f"{name}-claims"),
        element(
            "table",
            element("thead", element("tr", heads, role="row"), role="rowgroup"),
            element("tbody", (_claim_row(claim) for claim in claims), role="rowgroup"),
            class_="claims",
            role="table",
            aria_labelledby=f"{name}-claims",
        ),
    )


def _claim_row(claim: Claim) -> Markup:
    published = claim.published or "our own question"
    cells = (prose(claim.text), prose(published), prose(claim.measured), badge(claim.verdict), prose(claim.why))
    return element(
        "tr",
        (
            element("td", cell, role="cell", data_label=column)
            for column, cell in zip(COLUMNS, cells, strict=True)
        ),
        role="row",
        class_=CLASSES[claim.verdict],
    )  # fmt: skip


def figure_block(figure: Figure) -> Markup:
    """Return a figure with its caption; a wide one scrolls inside its box on a narrow screen."""
    drawn = picture(figure)
    image = element(
        "img",
        src=drawn.address,
        alt=first_sentence(figure.caption),
        width=drawn.width,
        height=drawn.height,
    )
    box = element("div", image, class_="scroll", tabindex="0", role="group", aria_label=f"Figure {figure.name}")
    return element("figure", box, element("figcaption", prose(figure.caption)))


def first_sentence(text: str) -> str:
    """Return the text up to its first full stop that ends a sentence."""
    plain = " ".join(text.split())
    found = re.match(r"(.+?[.:])(?:\s+[A-ZΑ-Ω]|$)", plain)
    return found[1].rstrip(":") if found else plain


def table_block(table: ResultTable) -> Markup:
    """Return a table that scrolls inside its box where it does not fit."""
    columns = list(table.rows[0])
    kinds = {column: _kind([row.get(column) for row in table.rows]) for column in columns}
    heads = [element("th", prose(column), scope="col", class_=kinds[column]) for column in columns]
    body = [
        element("tr", (element("td", prose(readable(row.get(column))), class_=kinds[column]) for column in columns))
        for row in table.rows
    ]
    inner = element(
        "table",
        element("caption", prose(table.caption)),
        element("thead", element("tr", heads)),
        element("tbody", body),
    )
    tall = " tall" if len(body) > TALL else ""
    return element("div", inner, class_=f"scroll{tall}", tabindex="0", role="group", aria_label=f"Table {table.name}")


def _kind(values: Sequence[Any]) -> str | None:
    """Return how a column is set: numbers to the right, short text on one line."""
    if all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values):
        return "num"
    return "short" if max(len(readable(value)) for value in values) <= SHORT else None


def readable(value: Any) -> str:
    """Return a value as a reader wants it: four digits, a dash for what is missing."""
    if value is None or value != value:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(readable(entry) for entry in value)
    return str(value)


def settings_block(settings: Mapping[str, Any]) -> Markup | None:
    """Return the settings that all runs share as a list of terms."""
    if not settings:
        return None
    pairs = [(element("dt", prose(name)), element("dd", prose(readable(value)))) for name, value in settings.items()]
    return together(element("h3", "Settings"), element("dl", pairs))
