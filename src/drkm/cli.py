"""The command `drkm`; what it can do is in `drkm.commands`."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its code, or say which extra it needs.

    Codes: 0 done, 1 a bug of drkm, 2 what the user can mend, 130 interrupted.
    """
    try:
        sys.exit(_run(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:
        # Only while modules are imported: a command that has begun ends with its own sentence.
        print("drkm: interrupted", file=sys.stderr)
        sys.exit(130)


def _run(words: Sequence[str]) -> int:
    try:
        import typer  # noqa: F401 - only to see whether it is there
    except ModuleNotFoundError:
        sys.exit("drkm: the command line needs the extra 'cli': pip install 'drkm[cli]'")
    from drkm.commands import app
    from drkm.commands._outcome import run

    return run(app, words)


if __name__ == "__main__":
    main()
