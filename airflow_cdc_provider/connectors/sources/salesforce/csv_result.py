"""Parse a page of a bulk result, and check that it is complete. Pure.

Every value is quoted and may contain newlines, quotes and commas. Only the empty text is NULL: ``NA`` and ``null`` are
ordinary texts. A complete page has the announced number of rows, paired quotes, rows of equal width, and a newline at
the end: without it, half of a doubled quote would look like the end of the last value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

QUOTE = b'"'
MAX_ROW_BYTES = 64 << 20


class IncompletePage(ValueError):
    """The page is not the one that the server announced. The text contains no value."""


def read_page(body: bytes, columns: Sequence[str], announced: int | None) -> pa.Table:
    """Text columns in the order of ``columns``. A page without rows may have no header. ``announced``: number of rows.
    Raises IncompletePage."""
    import pyarrow as pa
    from pyarrow import csv

    if announced is None:
        raise IncompletePage("the response has no number of rows")
    if announced == 0 and not body.strip():
        return pa.table({name: pa.array([], pa.string()) for name in columns})
    if body.count(QUOTE) % 2 or not body.endswith(b"\n"):
        raise IncompletePage("the last value is not terminated")
    try:
        table = csv.read_csv(
            pa.BufferReader(body),
            csv.ReadOptions(block_size=min(max(len(body), 1 << 20), MAX_ROW_BYTES)),
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
        raise IncompletePage(_without_values(str(error))) from None
    if table.num_rows != announced:
        raise IncompletePage(f"{table.num_rows} rows of {announced}")
    return table


def _without_values(message: str) -> str:
    """Arrow's message quotes a row after the colon."""
    return message.partition(":")[0] if "Expected" not in message else "rows of unequal width"
