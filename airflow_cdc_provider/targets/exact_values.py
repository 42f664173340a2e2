"""Arrow values as copies compare them: NULL equals NULL and NaN equals NaN, but 0.0 is not -0.0."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers = npt.NDArray[np.int64]


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Floating-point numbers as their bits."""
    if not pa.types.is_floating(column.type):
        return column
    one_nan = pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), column)
    bits = pa.int32() if column.type == pa.float32() else pa.int64()
    return pa.chunked_array([one_nan.combine_chunks().view(bits)])


@dataclass(frozen=True)
class EncodedRows:
    """``codes``: the same number for equal rows: 0, 1, 2, … ``steps``: per column its distinct values, and the known
    combinations with the values of the columns before."""

    steps: Sequence[tuple[pa.Array, Numbers]]
    codes: Numbers


def encode_rows(columns: Iterable[pa.ChunkedArray], rows: int) -> EncodedRows:
    steps, codes = list[tuple[pa.Array, Numbers]](), np.zeros(rows, np.int64)
    for column in map(comparable, columns):
        values = column.unique()
        combined = codes * len(values) + pc.index_in(column, value_set=values).to_numpy()
        known, codes = np.unique(combined, return_inverse=True)
        steps.append((values, known))
    return EncodedRows(steps, codes)
