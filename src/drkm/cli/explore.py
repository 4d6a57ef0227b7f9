"""The command `drkm explore`."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drkm.cli import _options as options
from drkm.cli._groups import grouped
from drkm.cli._help import examples
from drkm.cli._options import Device, Force, Json, Model, Reading, Shape, ShownData
from drkm.cli._outcome import say
from drkm.wording import counted, in_bytes

if TYPE_CHECKING:
    from socket import socket

    from drkm.explorer import Subject

EXAMPLES = examples(
    "drkm explore digits.safetensors -o digits.html",
    "drkm explore wine.safetensors wine.csv --labels class -o wine.html",
    "drkm explore digits.safetensors new.npy --labels labels.csv --live",
)
#: maximum number of samples shown, and the suffixes of a page
MOST, SUFFIXES = 50_000, (".html", ".htm")


@grouped
def explore(
    model: Model,
    reading: Reading,
    data: ShownData = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="PAGE", help="The page to write, one .html file.")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="COLUMNS|FILE", help="Columns of DATA, or a file with one row per sample, to colour by."),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Serve the page on this machine instead, with the live model.")
    ] = False,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Port of --live; 0 means any free port.")
    ] = 0,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    most: Annotated[
        int, typer.Option(metavar="N", min=1, help="Show at most N samples, evenly spaced over DATA.")
    ] = MOST,
    shape: Shape = None,
    device: Device = "cpu",
    force: Force = False,
    json: Json = False,
) -> None:
    """Write a page that shows what a model learned, or serve it.

    The page has a map of the codes, every sample beside its reconstruction, a slider for each code, spectra,
    convergence and the most anomalous samples, in one file that needs no network. With --live it decodes any codes, on
    127.0.0.1 only.
    """
    _check_target(out, live, port, force)
    reading.check_shown(data, labels)
    if live:
        from drkm.explorer.server import listening

        # A busy port is refused before minutes of work.
        with listening(port) as opened:
            _serve(_subject(model, data, labels, reading, shape, most, device), opened, show=open_)
        return
    subject = _subject(model, data, labels, reading, shape, most, device)
    from drkm import files
    from drkm.explorer import write_page

    assert out is not None
    with files.called("out"):
        write_page(subject, out)
    if open_:
        webbrowser.open(out.resolve().as_uri())
    size = out.stat().st_size
    if json:
        options.print_json({"out": out, "samples": subject.count, "bytes": size})
    else:
        say(f"{counted(subject.count, 'sample')} in {out} ({in_bytes(size)}): open it in a browser")


def _check_target(out: Path | None, live: bool, port: int, force: bool) -> None:
    """Refuse, before any work, a page that is neither written nor served, or both."""
    if live:
        if out is not None:
            raise ValueError(f"out: a live page is served and not written, leave {out} or --live out")
        from drkm.explorer.server import web_server

        web_server()
        return
    if port:
        raise ValueError(f"port: {port} is for --live, a page that is written needs none")
    if out is None:
        raise ValueError("out: expected a page to write, as in -o page.html, or --live")
    from drkm import files

    files.check_target(out, force=force, suffixes=SUFFIXES)


def _subject(
    path: Path, data: Path | None, labels: str | None, reading: Reading, shape: str | None, most: int, device: str
) -> Subject:
    """Return the model with the samples to show and their labels."""
    from dataclasses import replace

    from drkm.cli._data import shown
    from drkm.explorer import Subject
    from drkm.explorer.details import evenly_spaced

    found = shown(path, data, labels, reading, shape, device)
    fitted, table, rows, image, known = found
    count, kept = found.n, evenly_spaced(found.n, most)
    if len(kept) < count and rows is None:
        rows = fitted.numpy(fitted.model.fitted_.X[:])

    def chosen(entries: Sequence[Any]) -> Sequence[Any]:
        return entries if len(kept) == count else [entries[row] for row in kept]

    return Subject(
        fitted.model,
        rows if rows is None or len(kept) == count else rows[kept],
        replace(fitted.preparation, shape=image),
        path.stem,
        fitted.columns,
        None if table is None or table.names is None else chosen(table.names),
        {name: chosen(entries) for name, entries in known.items()},
    )


def _serve(subject: Subject, opened: socket, *, show: bool) -> None:
    """Serve the page until Ctrl-C."""
    from drkm.explorer.content import Content
    from drkm.explorer.server import LiveServer

    server = LiveServer(Content(subject), opened)
    say(f"the page is at {server.address}\nthis machine alone can open it; Ctrl-C ends it")
    if show:
        webbrowser.open(server.address)
    try:
        server.run()
    except KeyboardInterrupt:
        say("ended")
