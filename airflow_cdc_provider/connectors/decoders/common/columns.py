"""Arrow columns of messages that are read together: small questions about them, and which of them cannot be."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


class NotVectorizable(ValueError):
    """These rows have to be read one by one."""

    def __init__(self, rows: Collection[int]) -> None:
        super().__init__(f"{len(rows)} rows")
        self.rows = rows


def require(good: pa.BooleanArray) -> None:
    """Raises NotVectorizable for all rows that are not."""
    if pc.all(good, skip_nulls=False).as_py() is not True:
        raise NotVectorizable({int(row) for row in true_rows(pc.invert(pc.fill_null(good, False)))})


def true_rows(told: pa.BooleanArray) -> npt.NDArray[np.int64]:
    return np.flatnonzero(told.to_numpy(zero_copy_only=False))


def places(there: pa.BooleanArray, start: int) -> pa.Array:
    """For each row that is there its number among these, from ``start`` on; NULL for the others."""
    counted = pc.add(pc.cumulative_sum(there.cast(pa.int64())), start - 1)
    return pc.if_else(there, counted, pa.scalar(None, pa.int64()))


def fields(column: pa.StructArray) -> dict[str, pa.Array]:
    """By name; NULL where the struct is."""
    return dict(zip((field.name for field in column.type), column.flatten(), strict=True))


def is_text(column: pa.Array | None) -> bool:
    return column is not None and bool(pa.types.is_string(column.type))


def is_number(column: pa.Array | None) -> bool:
    return column is not None and bool(pa.types.is_int64(column.type))
