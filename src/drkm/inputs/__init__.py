"""Input data: samples as arrays, data frames, tensors or files, and how data of a file were prepared."""

from drkm.inputs.samples import (
    as_row,
    checked,
    empty_frame,
    is_frame,
    keeps_digits,
    place,
    read,
    restored_on_failure,
    target,
    write,
)

__all__ = [
    "as_row",
    "checked",
    "empty_frame",
    "is_frame",
    "keeps_digits",
    "place",
    "read",
    "restored_on_failure",
    "target",
    "write",
]
