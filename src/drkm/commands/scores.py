"""Scoring codes: evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    codes: Annotated[Path, typer.Argument(help="Codes, one row a sample: npy, npz or csv.")],
    factors: Annotated[Path, typer.Argument(help="Factors as integer classes, one row a sample: npy, npz or csv.")],
    standardize: Annotated[bool, typer.Option(help="Scale codes to unit variance, as kernel codes need.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Score codes against factors: every disentanglement metric beside its chance level.

    Example: drkm evaluate codes.npy factors.npy --standardize
    """
    from drkm.metrics import evaluate_files

    typer.echo(evaluate_files(codes, factors, standardize=standardize, format="json" if json else "table"))
