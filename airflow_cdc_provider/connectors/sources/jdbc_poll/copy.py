"""A full copy of a table, in splits that any process can read, any number of times.

The copy alone is not exact: splits are read in parallel under concurrent writes. Its floor is the source's clock before
the first read. Rounds that were planned earlier contain nothing newer, and everything that is committed later is in a
round that is planned later.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_cdc_provider.connectors.key_ranges import ROWS_AT_ONCE, KeyRange, key_ranges
from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.connectors.sources.jdbc_poll.database import Database
from airflow_cdc_provider.connectors.sources.jdbc_poll.identities import read_identities
from airflow_cdc_provider.connectors.sources.jdbc_poll.rows import RowConverter
from airflow_cdc_provider.connectors.sources.jdbc_poll.select import TableQueries
from airflow_cdc_provider.connectors.sources.polling.intervals import IntervalPlanner, copy_anchor
from airflow_cdc_provider.core.log.positions import Position

if TYPE_CHECKING:
    import pyarrow as pa


@contextmanager
def open_copy(database: Database, queries: TableQueries, epoch: int, sealed: Position, cores: int) -> Iterator[Copy]:
    """``sealed`` is the end of the last sealed window."""
    table = queries.schema.table
    with database.session() as connection:
        identity = read_identities(connection, {table: queries.described}).get(table)
        now = database.now(connection)
        rows, least, most = connection.execute(queries.extent()).one()
    anchor = copy_anchor(sealed, table, epoch, IntervalPlanner(now, database.options))
    splits = key_ranges(rows, least, most, cores, queries.where)
    yield Copy(
        anchor.floor, anchor.position, queries.schema, SplitRead(splits, lasting=True), int(rows), identity=identity
    )


def read_split(database: Database, queries: TableQueries, split: KeyRange) -> Iterator[pa.Table]:
    """Rows in the table's types, streamed. ``queries`` has the row filter of ``split``."""
    converter = RowConverter(queries)
    with database.session(autocommit=False) as connection:
        streamed = connection.execution_options(stream_results=True, max_row_buffer=ROWS_AT_ONCE)
        with streamed.execute(queries.rows(split.low, split.high)) as result:
            for rows in result.partitions(ROWS_AT_ONCE):
                yield converter.table(rows)
