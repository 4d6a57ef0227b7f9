"""The commands `drkm datasets list`, `download` and `verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from drkm.cli._help import SectionedCommand, application
from drkm.cli._outcome import say

app = application("List, download and verify the image datasets.")


@app.command("list", cls=SectionedCommand)
def list_() -> None:
    """List the datasets with their licences and the files in place."""
    from drkm.datasets import list_datasets

    for info in list_datasets():
        place = ", ".join(file.name for file in info.present()) or f"no file{', images are drawn' * info.drawn}"
        say(f"{info.name}: {info.about}\n    licence: {info.licence}; in place: {place}")
    _print_folder()


@app.command(cls=SectionedCommand)
def download(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name that 'drkm datasets list' shows.")],
) -> None:
    """Download the original files of a dataset and verify them.

    Example: drkm datasets download cars3d
    """
    from drkm.datasets import download as fetch

    for path in fetch(name):
        say(path)


@app.command(cls=SectionedCommand)
def verify(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One dataset; all by default.")] = None,
) -> None:
    """Verify the files in the data folder.

    The exit code is 2 if one of them is damaged.
    """
    from drkm.datasets import verify as check

    checks = check(name)
    for found in checks:
        say(f"{found.dataset}: {found.path.name}: {found.state}{f', {found.message}' if found.message else ''}")
    _print_folder()
    if any(found.state not in ("ok", "missing") for found in checks):
        raise typer.Exit(2)


def _print_folder() -> None:
    from drkm.datasets import data_dir

    say(f"data folder: {data_dir()} (environment variable DRKM_DATA)")
