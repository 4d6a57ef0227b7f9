"""The command `drkm`: one module per group of commands, put together in `app`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its code, or say which extra it needs.

    Codes: 0 done, 1 a bug of drkm, 2 what the user can mend, 130 interrupted, 141 nobody reads what it prints.
    """
    try:
        sys.exit(_run(sys.argv[1:] if arguments is None else arguments))
    except BrokenPipeError:
        # As in `drkm status | head`. Other tools die of the signal 13, which shells show as 128 + 13; here it would
        # also kill a runner whose worker is gone. What is still to be printed must not complain at the very end.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())
        sys.exit(141)
    except KeyboardInterrupt:
        # Only while modules are imported: a command that has begun ends with its own sentence.
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
