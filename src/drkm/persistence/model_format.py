"""What files of all estimators have in common, without torch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from drkm.validation.registry import Unknown

#: the version is explained in `model_file`
KIND, VERSION = "model", 5


@contextmanager
def errors_name_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors about parts of a file into errors that name the file and say that it is damaged."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        if str(error).startswith("feature_maps: "):
            raise
        if isinstance(error, Unknown):
            raise ValueError(f"path: {path} has {error}") from error
        why = (str(error).splitlines() or [""])[0]
        raise ValueError(
            f"path: {path} is damaged, a part of the model is missing or of the wrong kind ({why})"
        ) from error
