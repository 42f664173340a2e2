"""Checks of Arrow columns of messages that are decoded in one batch."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


class NotVectorizable(ValueError):
    """These rows must be decoded one by one."""

    def __init__(self, rows: Collection[int]) -> None:
        super().__init__(f"{len(rows)} rows")
        self.rows = rows


def require(valid: pa.BooleanArray) -> None:
    """Raises NotVectorizable for all rows that are not valid."""
    if pc.all(valid, skip_nulls=False).as_py() is not True:
        raise NotVectorizable({int(row) for row in true_rows(pc.invert(pc.fill_null(valid, False)))})


def true_rows(column: pa.BooleanArray) -> npt.NDArray[np.int64]:
    return np.flatnonzero(column.to_numpy(zero_copy_only=False))


def number_rows(present: pa.BooleanArray, start: int) -> pa.Array:
    """Numbers the rows that are present, from ``start`` on; NULL for the others."""
    numbers = pc.add(pc.cumulative_sum(present.cast(pa.int64())), start - 1)
    return pc.if_else(present, numbers, pa.scalar(None, pa.int64()))


def fields(column: pa.StructArray) -> dict[str, pa.Array]:
    """The fields by name, NULL where the struct is NULL."""
    return dict(zip((field.name for field in column.type), column.flatten(), strict=True))


def is_text(column: pa.Array | None) -> bool:
    return column is not None and bool(pa.types.is_string(column.type))


def is_number(column: pa.Array | None) -> bool:
    return column is not None and bool(pa.types.is_int64(column.type))
