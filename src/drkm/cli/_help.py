"""Help pages as plain text, which look the same in a narrow terminal, in a pipe and in a log."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

#: settings of every Typer application here
SETTINGS: dict[str, Any] = {
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "no_args_is_help": True,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


class SectionedCommand(TyperCommand):
    """A command whose options are listed under the titles they were given as `rich_help_panel`."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line, without the braces that some versions of typer put around arguments."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write one section per title; options without a title come first."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            if param.param_type_name == "argument":
                # Without the type, which "MODEL <path>" repeats.
                sections["Arguments"].append((record[0].split(" <")[0], record[1]))
            else:
                sections.setdefault(getattr(param, "rich_help_panel", None) or "Options", []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def examples(*lines: str) -> str:
    """Return an epilogue that the formatter does not rewrap."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def application(help: str, epilog: str | None = None) -> typer.Typer:
    """Return an empty application with the common settings."""
    return typer.Typer(help=help, epilog=epilog, **SETTINGS)
