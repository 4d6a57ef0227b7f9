"""The command `drkm fill`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from drkm.cli import _options as options
from drkm.cli._groups import grouped
from drkm.cli._help import examples
from drkm.cli._options import Force, Json, Reading
from drkm.cli._outcome import note, say
from drkm.wording import counted, unnamed

if TYPE_CHECKING:
    import numpy as np

    from drkm.files import Table

EXAMPLES = examples(
    "drkm fill patients.csv -o whole.csv --drop year",
    "drkm fit patients.csv -o p.safetensors --id patient --impute fill --scale standard   # kept in the model",
)


@grouped
def fill(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA", help="npy, npz, csv, tsv or parquet with one row per sample.", show_default=False
        ),
    ],
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
    entries are unchanged. A csv file has all columns of the table in their order: text, and columns of --id and --drop,
    are not used as data but written as they are. An npz file has the numbers as data, their names as data_names, and
    each other column as an array of its name; an npy file has the numbers alone.
    """
    import numpy as np

    from drkm import files

    files.check_target(out, force=force, suffixes=files.WRITABLE)
    reading.check(data)
    options.check_impute(impute)
    from drkm.cli._data import check_finite, filling_of, training_columns
    from drkm.cli._table_notes import tell_far_entries, tell_names

    columns = replace(training_columns(reading, gaps=True), skips_text=True)
    table = files.read_table(data, array=reading.array, columns=columns, pictures=None)
    tell_names(data, table)
    _tell_text(data, table, reading, out)
    check_finite(data, table, gaps=True)
    tell_far_entries(data, table)
    gaps = int(np.isnan(table.values).sum())
    values = filling_of(data, table, impute).fill(table.values) if gaps else table.values
    with files.called("out"):
        _write(out, data, table, values, reading)
    if json:
        options.print_json({"out": out, "samples": len(values), "features": values.shape[1], "filled": gaps})
        return
    share = f"{100 * gaps / values.size:.3g}% of all entries" if gaps else "there were none"
    say(f"{counted(gaps, 'gap')} of {counted(len(values), 'sample')} filled ({share}), written to {out}")


def _write(out: Path, data: Path, table: Table, values: np.ndarray, reading: Reading) -> None:
    """Write all columns of a table where there is a place for text, or an array."""
    from drkm import files

    kind, names = out.suffix.lower(), table.columns or unnamed(values.shape[1])
    titles = {"data_names": table.columns} if kind == ".npz" and table.columns else {}
    if not table.places or kind == ".npy":
        files.write_table(out, values, names, shape=table.shape, before=table.row_names(), after=titles)
        return
    whole = _whole_table(data, table, values, reading)
    if kind == ".csv":
        files.write_table(out, values[:, :0], [], before=whole)
        return
    # A first column without a name has the names of the rows.
    others = {name or "name": whole[name] for place, name in enumerate(whole) if place not in table.places}
    files.write_table(out, values, names, before=others, after=titles)


def _tell_text(data: Path, table: Table, reading: Reading, out: Path) -> None:
    """Report columns of text, which nobody named."""
    from drkm import files

    named = {*reading.dropped, reading.id, "", table.title if table.found_id else ""}
    text = [name for place, name in enumerate(table.header) if place not in table.places and name not in named]
    if text and table.places:
        columns = "column" if len(text) == 1 else "columns"
        done = "left out, npy has no place for it" if out.suffix.lower() == ".npy" else "written as it is"
        note(f"{data}: text in {columns} {files.listed(text)}: not used as data, {done}")


def _whole_table(data: Path, table: Table, values: np.ndarray, reading: Reading) -> dict[str, list[str]]:
    """Return all columns of a file as text, in their order, with numbers in the place of gaps."""
    import numpy as np

    from drkm import files

    columns = [list(entries) for entries in files.read_labels(data, table.header, header=reading.header).values()]
    for place, before, after in zip(table.places, table.values.T, values.T, strict=True):
        for row in np.flatnonzero(np.isnan(before)):
            columns[place][row] = repr(float(after[row]))
    titles = table.header if table.columns else unnamed(len(columns))
    return dict(zip(titles, columns, strict=True))
