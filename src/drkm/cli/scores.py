"""The command `drkm evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from drkm.cli import _options as options
from drkm.cli._help import examples
from drkm.cli._options import READING, Header, Json
from drkm.cli._outcome import say

EXAMPLES = examples(
    "drkm evaluate codes.npy factors.npy --standardize",
    "drkm evaluate codes.csv factors.csv --id file --metrics mig,sap --json",
)


def evaluate(
    codes: Annotated[
        Path, typer.Argument(metavar="CODES", help="Codes, one row per sample: npy, npz, csv, tsv or parquet.")
    ],
    factors: Annotated[
        Path,
        typer.Argument(
            metavar="FACTORS", help="Factors as classes, integers or text, one row per sample, in the same order."
        ),
    ],
    standardize: Annotated[
        bool, typer.Option("--standardize", help="Scale codes to unit variance, as kernel codes need.")
    ] = False,
    continuous: Annotated[
        bool, typer.Option("--continuous", help="Factors are numbers, which most metrics bin into 20 classes.")
    ] = False,
    metrics: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Metrics to compute, as in irs,mig,sap; all by default.")
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Column of row names; if both files have it, the names must agree.",
            rich_help_panel=READING,
        ),
    ] = None,
    drop: Annotated[
        str | None,
        typer.Option(metavar="COLUMNS", help="Columns of either file to leave out.", rich_help_panel=READING),
    ] = None,
    header: Header = None,
    json: Json = False,
) -> None:
    """Score codes against factors, with chance levels.

    Prints all disentanglement metrics; chance is the score of the same codes with their rows shuffled. A second table
    has scores per factor, named by the columns (csv, parquet, arrays of an npz) or by factor_names in the file. The
    columns that encode --quality and --anomaly add are not codes and are left out.
    """
    from drkm.metrics import evaluate_files

    say(
        evaluate_files(
            codes,
            factors,
            metrics=options.words_of(metrics) or None,
            standardize=standardize,
            continuous=continuous,
            id=id,
            drop=options.columns_of(drop),
            header=header,
            format="json" if json else "table",
        )
    )
