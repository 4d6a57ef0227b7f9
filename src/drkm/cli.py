"""The command `drkm`; what it can do is in `drkm.commands`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command, or say which extra it needs."""
    try:
        import typer  # noqa: F401 - only to see whether it is there
    except ModuleNotFoundError:
        sys.exit("drkm: the command line needs the extra 'cli': pip install 'drkm[cli]'")
    from drkm.commands import app

    try:
        app()
    except (ValueError, TypeError, OSError) as error:
        # What a user can mend is one sentence; a traceback would hide it.
        print(f"drkm: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
