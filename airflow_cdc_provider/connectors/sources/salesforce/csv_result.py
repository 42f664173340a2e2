"""A page of a bulk result: CSV read exactly, and whole. Pure.

Every value is quoted; newlines, quotes and commas may stand inside. Only the empty text is NULL: ``NA`` and ``null``
are texts like any other. Whether a page came whole is told by all of these together: the number of rows the server
announced, quotes that pair, rows of equal width, and a newline at the end: without it, half of a doubled quote would
look like the end of the last value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

QUOTE = b'"'
LARGEST_ROW_BYTES = 64 << 20


class BrokenPage(ValueError):
    """What came is not the page that was announced. Says no value."""


def read_page(body: bytes, columns: Sequence[str], announced: int | None) -> pa.Table:
    """The texts of the columns, in their order. A page without rows may come without header. Raises BrokenPage."""
    import pyarrow as pa
    from pyarrow import csv

    if announced is None:
        raise BrokenPage("the server did not say how many rows it sends")
    if announced == 0 and not body.strip():
        return pa.table({name: pa.array([], pa.string()) for name in columns})
    if body.count(QUOTE) % 2 or not body.endswith(b"\n"):
        raise BrokenPage("the last value does not end")
    try:
        table = csv.read_csv(
            pa.BufferReader(body),
            csv.ReadOptions(block_size=min(max(len(body), 1 << 20), LARGEST_ROW_BYTES)),
            csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=len(columns) > 1),
            csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()),
                include_columns=list(columns),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        raise BrokenPage(_plain(str(error))) from None
    if table.num_rows != announced:
        raise BrokenPage(f"{table.num_rows} rows of {announced}")
    return table


def _plain(message: str) -> str:
    """Arrow's words up to where they quote a row."""
    return message.partition(":")[0] if "Expected" not in message else "rows of unequal width"
