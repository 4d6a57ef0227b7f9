"""The command line in this process, for tests that need no separate process."""

import contextlib
import io
from dataclasses import dataclass

from drkm.cli import main


@dataclass
class Outcome:
    code: int
    out: str
    err: str


def drkm(*words) -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(word) for word in words])
        except SystemExit as end:
            code = end.code
    return Outcome(code, out.getvalue(), err.getvalue())


def refused(*words) -> str:
    """Run a command that must be refused, and return its one-sentence error."""
    done = drkm(*words)
    assert done.code == 2, done
    assert done.out == ""
    assert done.err.startswith("drkm: ")
    assert done.err.count("\n") == 1
    return done.err
