"""The command `drkm`: one module per group of commands, assembled in `app`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its code, or print which extra it needs.

    Codes: 0 done, 1 a bug of drkm, 2 an error that the user can fix, 130 interrupted, 141 a closed pipe.
    """
    try:
        sys.exit(_run(sys.argv[1:] if arguments is None else arguments))
    except BrokenPipeError:
        # As in `drkm status | head`. Other tools die of signal 13, which shells show as 128 + 13; here it would also
        # kill a runner whose worker is gone. Output that is still buffered must not raise an error at exit.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())
        sys.exit(141)
    except KeyboardInterrupt:
        # Only while modules are imported: a command that has begun prints its own message.
        print("drkm: interrupted", file=sys.stderr)
        sys.exit(130)


def _run(words: Sequence[str]) -> int:
    try:
        import typer  # noqa: F401 - only to see whether it is there
    except ModuleNotFoundError:
        print("drkm: the command line needs the extra 'cli': pip install 'drkm[cli]'", file=sys.stderr)
        return 2
    from drkm.cli._outcome import run
    from drkm.cli.app import app

    return run(app, words)
