"""A copy of a whole table, in shares that any process can read, any number of times.

Not exact by itself: shares are read one beside the other while others write. It stands where the source's clock stood
before the first was read; what was planned to be read earlier says nothing new, and all that was committed since is in
an interval that is planned later.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_cdc_provider.connectors.key_ranges import ROWS_AT_ONCE, KeyRange, key_ranges
from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.connectors.sources.jdbc_poll.database import Database
from airflow_cdc_provider.connectors.sources.jdbc_poll.identities import read_identities
from airflow_cdc_provider.connectors.sources.jdbc_poll.rows import Rows
from airflow_cdc_provider.connectors.sources.jdbc_poll.select import Selectable
from airflow_cdc_provider.connectors.sources.polling.intervals import Clock, anchor
from airflow_cdc_provider.core.log.positions import Position

if TYPE_CHECKING:
    import pyarrow as pa


@contextmanager
def open_copy(database: Database, selectable: Selectable, epoch: int, sealed: Position, cores: int) -> Iterator[Copy]:
    """``sealed`` is the end of the last sealed window."""
    with database.session() as connection:
        identity = read_identities(connection, {selectable.schema.table: selectable.described})
        now = database.now(connection)
        rows, least, most = connection.execute(selectable.extent()).one()
    stands = anchor(sealed, selectable.schema.table, epoch, Clock(now, database.options))
    shares = key_ranges(rows, least, most, cores, selectable.where)
    told = identity.get(selectable.schema.table)
    yield Copy(stands.floor, stands.position, selectable.schema, SplitRead(shares), int(rows), identity=told)


def read_split(database: Database, selectable: Selectable, part: KeyRange) -> Iterator[pa.Table]:
    """Rows in the table's types, as they come. ``selectable`` has the filter of ``part``."""
    rows = Rows(selectable)
    with database.session(autocommit=False) as connection:
        streamed = connection.execution_options(stream_results=True, max_row_buffer=ROWS_AT_ONCE)
        with streamed.execute(selectable.rows(part.low, part.high)) as found:
            for some in found.partitions(ROWS_AT_ONCE):
                yield rows.table(some)
