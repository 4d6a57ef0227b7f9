"""The HTML page of a record, in one self-contained file."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from drkm.explorer.content import record
from drkm.explorer.subject import Subject
from drkm.files import write_whole
from drkm.pages.assets import asset, theme
from drkm.pages.markup import Markup, element, together

PACKAGE = "drkm.explorer"
#: how to write parts of file names that are not UTF-8: as escapes, which JSON reads
UNENCODABLE = "backslashreplace"
#: scripts in the order of their dependencies
SCRIPTS = (
    "unpack",
    "elements",
    "colours",
    "pictures",
    "data",
    "stamps",
    "view",
    "map",
    "choices",
    "gestures",
    "sample",
    "sliders",
    "traverse",
    "charts",
    "model",
    "start",
)


def page(shown: dict[str, Any]) -> str:
    """Return the HTML page of a record.

    All data are in one block of JSON that is never executed, and are inserted into the page as text. The content
    security policy allows only this script and this style, by their hashes.
    """
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy(live=shown["live"])),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", f"{shown['title']}: drkm explorer"),
        element("style", Markup(style())),
    )
    body = element(
        "body",
        Markup(asset(PACKAGE, "assets/body.html")),
        element("script", Markup(embedded(shown)), type="application/json", id="record"),
        element("script", Markup(script())),
    )
    return str(together(Markup("<!doctype html>\n"), element("html", head, body, lang="en"), "\n"))


def policy(*, live: bool = False) -> str:
    """Return the content security policy: one script and one style by their hashes, and nothing else."""
    connect = "'self'" if live else "'none'"
    return (
        f"default-src 'none'; script-src '{_hash(script())}'; style-src '{_hash(style())}'; img-src data:; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'"
    )


def embedded(shown: dict[str, Any]) -> str:
    """Return a record as JSON that cannot close the element that holds it."""
    text = json.dumps(shown, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def write_page(subject: Subject, path: str | os.PathLike[str]) -> Path:
    """Write the page of a model to an HTML file, atomically."""
    text = page(record(subject))
    return write_whole(path, lambda file: file.write(text.encode(errors=UNENCODABLE)))


def style() -> str:
    """Return the style sheet of the page: the common theme, and its own rules."""
    return theme() + asset(PACKAGE, "assets/explorer.css")


def script() -> str:
    """Return the script of the page, with its parts in one private scope."""
    parts = "\n".join(asset(PACKAGE, f"assets/{name}.js") for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}}})();\n'


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
