"""Exit codes of commands, and error messages of one sentence on stderr."""

from __future__ import annotations

import logging
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

import typer

from drkm.machine.memory import NotEnoughMemory
from drkm.wording import aligned, shown

BUG, MENDABLE, INTERRUPTED = 1, 2, 130
DEBUG = "--debug"


class Interrupted(Exception):
    """Ctrl-C, with a message on how to resume."""


def run(app: typer.Typer, words: Sequence[str]) -> int:
    """Run the application and return its exit code; `--debug` may come before or after the command's name."""
    debug = DEBUG in words
    words = [word for word in words if word != DEBUG]
    # Pillow also logs what is wrong with a file, which the error message says already.
    logging.getLogger("PIL").addHandler(logging.NullHandler())
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = app(words or ["--help"], prog_name="drkm", standalone_mode=False)
        if sys.stdout is not None:
            # Flushing buffered output can fail too.
            sys.stdout.flush()
    except SystemExit as end:
        # How typer exits when the reader of a pipe has closed it.
        if isinstance(end.__context__, BrokenPipeError):
            raise end.__context__ from None
        raise
    except BrokenPipeError:
        raise
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Interrupted as interruption:
        return _say(str(interruption), INTERRUPTED)
    except Exception as error:
        if debug:
            print(shown(traceback.format_exc()), file=sys.stderr)
        return _report(error)
    if code == INTERRUPTED:
        return _say("interrupted", INTERRUPTED)
    return code if isinstance(code, int) else 0


def say(text: object) -> None:
    """Print text on stdout with its control characters escaped, because it may come from a file."""
    typer.echo(shown(str(text)))


def say_table(rows: Sequence[tuple[str, ...]]) -> None:
    """Print rows of the same length, with the first column left-aligned and the others right-aligned."""
    for line in aligned(rows):
        say(line)


def note(sentence: str) -> None:
    """Print on stderr what a command does by default."""
    _say(sentence, 0)


def warn(sentence: str) -> None:
    """Print a warning on stderr."""
    print(f"drkm: warning: {_one_line(sentence)}", file=sys.stderr)


def _report(error: Exception) -> int:
    # Errors of the option parser, whose classes are private in some versions of typer.
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.format_message(), file=sys.stderr)  # type: ignore[attr-defined]
        return MENDABLE
    if hasattr(error, "format_message"):
        context = getattr(error, "ctx", None)
        where = context.command_path if context is not None else "drkm"
        said = error.format_message().rstrip(".")
        return _say(f"{said}{' See' if said.endswith('?') else ': see'} {where} --help", MENDABLE)
    if isinstance(error, OSError) and error.strerror:
        return _say(f"{f'{error.filename}: ' if error.filename else ''}{error.strerror}", MENDABLE)
    if isinstance(error, ValueError | TypeError | OSError | ImportError | FloatingPointError | NotEnoughMemory):
        return _say(str(error), MENDABLE)
    # torch reports a failed allocation as a RuntimeError.
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "memory" in str(error)):
        return _say("not enough memory: use fewer samples, or --dtype float32", MENDABLE)
    return _say(f"a bug, please report it with what --debug shows: {type(error).__name__}: {error}", BUG)


def _say(sentence: str, code: int) -> int:
    print(f"drkm: {_one_line(sentence)}", file=sys.stderr)
    return code


def _one_line(sentence: str) -> str:
    return shown(" ".join(sentence.split()))


def _show_warning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    warn(str(message))
