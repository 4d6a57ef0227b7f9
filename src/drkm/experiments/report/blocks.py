"""The parts of a chapter: claims, figures, tables, settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from drkm.experiments.cells import all_numbers, readable, with_indices
from drkm.experiments.report.pictures import picture
from drkm.experiments.section import Claim, Figure, ResultTable, Verdict
from drkm.pages.markup import Markup, element, together
from drkm.wording import counted

#: notice above the report of a variant
VARIANT = (
    "These are runs of one's own settings. Words and claims are those of the paper's settings; verdicts are about the "
    "variant alone, not about the paper."
)
#: a sign beside the word, so that verdicts can be told apart without colours and at a glance
SIGNS = {Verdict.HELD: "✓", Verdict.FAILED: "✗", Verdict.UNDECIDED: "?"}
CLASSES = {Verdict.HELD: "held", Verdict.FAILED: "failed", Verdict.UNDECIDED: "undecided"}
COLUMNS = ("Claim", "Published", "Ours", "Why")
#: tables with more rows scroll inside their box
TALL = 20
#: text columns up to this width stay on one line
SHORT = 34


def badge(verdict: Verdict) -> Markup:
    """Return a verdict as sign and word."""
    sign = element("span", SIGNS[verdict], aria_hidden="true")
    return element("span", sign, " ", element("span", verdict.value), class_=f"verdict {CLASSES[verdict]}")


def badge_sign(verdict: Verdict) -> Markup:
    """Return the sign of a verdict, with its word as a label for screen readers."""
    return together(
        element("span", SIGNS[verdict], aria_hidden="true", title=verdict.value),
        element("span", " ", verdict.value, class_="spoken"),
    )


def prose(text: str) -> Markup:
    """Return plain text with letters such as σ_n or s_1 typeset with their index."""
    return together(with_indices(text, together, lambda letter, index: together(letter, element("sub", index))))


def emphasised(text: str) -> Markup:
    """Return plain text in which `**` encloses what matters most as HTML."""
    parts = map(prose, text.split("**"))
    return together(element("strong", part) if i % 2 else part for i, part in enumerate(parts))


def paragraphs(text: str) -> Markup:
    """Return plain text, in which blank lines separate paragraphs, as HTML."""
    return together(element("p", prose(part.strip())) for part in re.split(r"\n\s*\n", text) if part.strip())


def claims_block(claims: Sequence[Claim], name: str) -> Markup | None:
    """Return the claims, folded by verdict behind their count."""
    if not claims:
        return None
    folded = [
        folded_claims([claim for claim in claims if claim.verdict is verdict], f"{name}-{CLASSES[verdict]}")
        for verdict in Verdict
    ]
    return together(element("h3", "Claims"), folded)


def folded_claims(claims: Sequence[Claim], label: str) -> Markup | None:
    """Return claims of one verdict as a table, which becomes a stack of cards on narrow screens."""
    if not claims:
        return None
    # Roles are explicit because some browsers drop them when CSS changes the layout of a table.
    heads = [element("th", column, scope="col", role="columnheader") for column in COLUMNS]
    table = element(
        "table",
        element("thead", element("tr", heads, role="row"), role="rowgroup"),
        element("tbody", (_claim_row(claim) for claim in claims), role="rowgroup"),
        class_="claims",
        role="table",
        aria_labelledby=label,
    )
    return folded(together(badge(claims[0].verdict), " ", counted(len(claims), "claim")), table, id=label)


def folded(summary: object, *content: object, id: str | None = None) -> Markup:
    """Return content that a click on its summary unfolds."""
    return element("details", element("summary", summary, id=id), content)


def _claim_row(claim: Claim) -> Markup:
    published = claim.published or "our own question"
    cells = map(prose, (claim.text, published, claim.measured, claim.why))
    return element(
        "tr",
        (
            element("td", cell, role="cell", data_label=column)
            for column, cell in zip(COLUMNS, cells, strict=True)
        ),
        role="row",
    )  # fmt: skip


def figure_block(figure: Figure, name: str) -> Markup:
    """Return a figure with its caption and its files to download; a wide one scrolls on a narrow screen."""
    drawn = picture(figure)
    image = element(
        "img",
        src=drawn.address("svg"),
        alt=first_sentence(figure.caption),
        width=drawn.width,
        height=drawn.height,
    )
    box = element("div", image, class_="scroll", tabindex="0", role="group", aria_label=f"Figure {figure.name}")
    links = [
        (" ", element("a", kind.upper(), href=drawn.address(kind), download=f"{name}-{figure.name}.{kind}"))
        for kind in drawn.files
    ]
    return element("figure", box, element("figcaption", prose(figure.caption), element("span", links, class_="files")))


def first_sentence(text: str) -> str:
    """Return the first sentence of a text."""
    plain = " ".join(text.split())
    found = re.match(r"(.+?[.:])(?:\s+[A-ZΑ-Ω]|$)", plain)
    return found[1].rstrip(":") if found else plain


def table_block(table: ResultTable) -> Markup:
    """Return a table that scrolls inside its box if it does not fit."""
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


def _kind(values: list[Any]) -> str | None:
    """Return the style of a column: numbers right-aligned, short text on one line."""
    if all_numbers(values):
        return "num"
    return "short" if max(len(readable(value)) for value in values) <= SHORT else None


def settings_block(settings: Mapping[str, Any]) -> Markup | None:
    """Return the settings that all runs share as a list of terms."""
    if not settings:
        return None
    pairs = [(element("dt", prose(name)), element("dd", prose(readable(value)))) for name, value in settings.items()]
    return element("dl", pairs)
