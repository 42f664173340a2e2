"""A copy of a whole table, in shares that any process can read, any number of times.

Not exact by itself: shares are read one beside the other while others write. It stands where the source's clock stood
before the first was read; what was planned to be read earlier says nothing new, and all that was committed since is in
an interval that is planned later.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_cdc_provider.connectors.jdbc_poll.database import Database
from airflow_cdc_provider.connectors.jdbc_poll.rows import Rows
from airflow_cdc_provider.connectors.jdbc_poll.select import Selectable
from airflow_cdc_provider.connectors.polling.intervals import Clock, anchor
from airflow_cdc_provider.connectors.source import Copy, PagedRead
from airflow_cdc_provider.core.definition import Condition
from airflow_cdc_provider.core.plain import from_plain, to_plain
from airflow_cdc_provider.core.positions import Position

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE = 10_000
SHARES_PER_CORE = 4
"""Enough that a slow share does not leave the other cores idle, few enough for whole files."""


@contextmanager
def open_copy(database: Database, selectable: Selectable, epoch: int, sealed: Position, cores: int) -> Iterator[Copy]:
    """``sealed`` is the end of the last sealed window."""
    with database.session() as connection:
        now = database.now(connection)
        rows, least, most = connection.execute(selectable.extent()).one()
    stands = anchor(sealed, selectable.schema.table, epoch, Clock(now, database.options))
    where = to_plain(tuple(selectable.where))
    shares = tuple(
        json.dumps({"low": low, "high": high, "where": where})
        for low, high in ranges(least, most, min(SHARES_PER_CORE * cores, rows // ROWS_AT_ONCE))
    )
    yield Copy(stands.floor, stands.position, selectable.schema, PagedRead(shares), int(rows))


def ranges(least: object, most: object, parts: int) -> list[tuple[int | None, int | None]]:
    """Leading key values from … up to; open at both ends. One share where they are no whole numbers."""
    if parts < 2 or not isinstance(least, int) or not isinstance(most, int) or most - least < parts:
        return [(None, None)]
    edges = [least + (most - least) * part // parts for part in range(1, parts)]
    return list(zip([None, *edges], [*edges, None], strict=True))


def conditions_of(share: str) -> tuple[Condition, ...]:
    return tuple(from_plain(Condition, one) for one in json.loads(share)["where"])


def read_share(database: Database, selectable: Selectable, share: str) -> Iterator[pa.Table]:
    """Rows in the table's types, as they come."""
    rows = Rows(selectable)
    bounds = json.loads(share)
    low, high = bounds["low"], bounds["high"]
    with database.session(autocommit=False) as connection:
        streamed = connection.execution_options(stream_results=True, max_row_buffer=ROWS_AT_ONCE)
        for some in streamed.execute(selectable.rows(low, high)).partitions(ROWS_AT_ONCE):
            yield rows.table(some)
