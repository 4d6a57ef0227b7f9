"""Validation of samples by scikit-learn, with errors of one sentence; without torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from drkm.validation import checks


def checked(estimator: Any, X: Any, *, reset: bool, **options: Any) -> Any:
    """Return samples as the array that scikit-learn's `validate_data` makes of them with these options.

    Values that it would wrongly convert to numbers are refused, and its errors become one sentence.
    """
    from sklearn.utils.validation import validate_data

    if np.ma.is_masked(X):
        raise ValueError("X: contains masked values, fill them or leave their samples out")
    X = checks.dense_real("X", X).numpy(force=True) if checks.is_tensor(X) else X
    try:
        if not checks.is_sparse(X) and (found := checks.not_numbers(np.asarray(X), X)):
            raise ValueError(f"X: expected numbers, got {found}")
        return validate_data(estimator, X, reset=reset, **options)
    except (TypeError, ValueError) as error:
        raise type(error)(_one_sentence(str(error))) from error
    except OverflowError as error:
        raise ValueError("X: expected numbers that float64 can hold, got one beyond 1.8e308") from error


@contextmanager
def restored_on_failure(estimator: Any) -> Iterator[None]:
    """Restore the attributes of the estimator if a fit fails, so that an earlier fit stays usable."""
    known = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(known)
        raise


def _one_sentence(message: str) -> str:
    """Return scikit-learn's error about samples as one sentence, without the array and advice it may contain."""
    first = message.split("\n", 1)[0].rstrip(":. ")
    if first.startswith("Expected 2D array"):
        return f"X: {first} (Reshape your data by X.reshape(-1, 1) for one feature or X.reshape(1, -1) for one sample)"
    if first.startswith("Input X contains NaN"):
        return "X: contains NaN: leave such rows or columns out, or fill them in, as by drkm.Imputer"
    if first.startswith("Sparse data"):
        return "X: expected dense data, got a sparse matrix, use '.toarray()'"
    if first.startswith(("could not convert", "float() argument")):
        return f"X: expected numbers, {first}"
    if first.startswith("setting an array element"):
        return "X: expected one number for each sample and feature, got sequences of other lengths"
    if first.startswith(("The DType", "Cannot cast")):
        return "X: expected numbers, got columns of other kinds beside them"
    if first.startswith(("Complex data", "Found array")):
        # Two sentences before version 1.7.
        return f"X: {first.replace('. ', ', ')}"
    if first.startswith("Expected unique column names"):
        return f"X: expected columns of different names, got {message.split('- ', 1)[-1].splitlines()[0]}"
    if first.startswith("Expected a 2-dimensional container"):
        advice = "use X.to_frame() for one feature or X.to_frame().T for one sample"
        return f"X: expected rows and columns, got a Series, {advice}"
    return first if "\n" in message and first.startswith("Input X") else message


def as_array(values: Any) -> np.ndarray:
    """Return a sparse matrix, a tensor, copied from the GPU if it is there, or whatever numpy takes as an array."""
    if checks.is_sparse(values):
        return values.toarray()
    return values.numpy(force=True) if checks.is_tensor(values) else np.asarray(values)


def real_numbers(name: str, value: Any) -> np.ndarray:
    """Return numbers as an array of float64."""
    told = ""
    try:
        given = np.asarray(value)
        told = checks.not_numbers(given, value)
        # numpy would convert None to NaN.
        if np.iscomplexobj(given) or (given.dtype == object and given.ndim == 0) or told:
            raise TypeError("no real numbers")
        return given.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        # The text of a data frame begins with the names of its columns.
        got = told if told and hasattr(value, "columns") else f"{' '.join(repr(value).split()):.60}"
        raise TypeError(f"{name}: expected real numbers, got {got}") from error
    except OverflowError as error:
        raise ValueError(f"{name}: expected numbers that float64 can hold, got one beyond 1.8e308") from error


def check_codes(name: str, codes: Any, given: Any, names: np.ndarray) -> None:
    """Raise an error unless an array or tensor is finite and has one column per name, in their order if it has names.

    `given` is what the codes were read from.
    """
    # Column names are checked only if all are known: a data frame may have other names.
    columns = list(getattr(given, "columns", ())) if hasattr(given, "iloc") else []
    if columns != list(names) and set(columns) == set(names):
        raise ValueError(f"{name}: expected columns in the order of get_feature_names_out(), got {columns}")
    if codes.ndim != 2 or codes.shape[1] != len(names):
        raise ValueError(f"{name}: expected m×{len(names)} codes, got {'×'.join(map(str, codes.shape))}")
    if not (np.isfinite(codes) if isinstance(codes, np.ndarray) else codes.isfinite()).all():
        raise ValueError(f"{name}: contains NaN or infinity")
