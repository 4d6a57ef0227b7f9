"""Input data: samples as arrays, data frames, tensors or files, and how data of a file were prepared."""

from drkm.inputs.samples import (
    as_row,
    empty_frame,
    features_restored_on_failure,
    is_frame,
    place,
    read,
    target,
    write,
)

__all__ = ["as_row", "empty_frame", "features_restored_on_failure", "is_frame", "place", "read", "target", "write"]
