"""Input data: samples as arrays, data frames, tensors or files, and how data of a file were prepared."""

from drkm.inputs.samples import (
    as_row,
    empty_frame,
    is_frame,
    keeps_digits,
    named,
    place,
    read,
    target,
    write,
)
from drkm.validation.samples import checked, restored_on_failure

__all__ = [
    "as_row",
    "checked",
    "empty_frame",
    "is_frame",
    "keeps_digits",
    "named",
    "place",
    "read",
    "restored_on_failure",
    "target",
    "write",
]
