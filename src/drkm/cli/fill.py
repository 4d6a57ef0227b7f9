"""The command `drkm fill`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from drkm.cli import _options as options
from drkm.cli._groups import grouped
from drkm.cli._help import examples
from drkm.cli._options import Data, Force, Json, Reading
from drkm.cli._outcome import say
from drkm.wording import counted, unnamed

EXAMPLES = examples(
    "drkm fill patients.csv -o whole.csv --id patient --drop label",
    "drkm fit patients.csv -o p.safetensors --id patient --impute fill --scale standard   # kept in the model",
)


@grouped
def fill(
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT", help="File for the table: npy, npz or csv.")],
    reading: Reading,
    impute: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="fill, by denoising; mean or median of the column.",
            autocompletion=options.completed(*options.IMPUTE),
        ),
    ] = "fill",
    force: Force = False,
    json: Json = False,
) -> None:
    """Fill the gaps of a table: entries that are empty, NA or NaN.

    Rows are denoised, their gaps take the denoised values, and this is repeated until they hardly change. Kernels,
    widths and weights of components are those that best fill known entries that were masked for this purpose. All other
    entries are unchanged.
    """
    import numpy as np

    from drkm import files

    files.check_target(out, force=force, suffixes=files.WRITABLE)
    reading.check(data)
    options.check_impute(impute)
    from drkm.cli._data import check_finite, filling_of, tell_found_id, training_columns

    table = files.read_table(data, array=reading.array, columns=training_columns(reading, gaps=True))
    tell_found_id(data, table)
    check_finite(data, table, gaps=True)
    gaps = int(np.isnan(table.values).sum())
    values = filling_of(data, table, impute).fill(table.values) if gaps else table.values
    columns = table.columns or unnamed(values.shape[1])
    with files.called("out"):
        files.write_table(out, values, columns, shape=table.shape, before=table.row_names())
    if json:
        options.print_json({"out": out, "samples": len(values), "features": values.shape[1], "filled": gaps})
        return
    share = f"{gaps / values.size:.2g} of all entries" if gaps else "there were none"
    say(f"{counted(gaps, 'gap')} of {counted(len(values), 'sample')} filled ({share}), written to {out}")
