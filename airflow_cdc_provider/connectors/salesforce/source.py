"""Salesforce as a source connector: one channel of change events, copies over Bulk API 2.0 or REST."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from airflow_cdc_provider.connectors.salesforce.channels import read_channel
from airflow_cdc_provider.connectors.salesforce.check import find_problems
from airflow_cdc_provider.connectors.salesforce.check_tables import refuse_rules
from airflow_cdc_provider.connectors.salesforce.copying import PagedCopy, open_copy, read_share, tables_of
from airflow_cdc_provider.connectors.salesforce.events import Undecodable
from airflow_cdc_provider.connectors.salesforce.news import news_behind
from airflow_cdc_provider.connectors.salesforce.options import read_options
from airflow_cdc_provider.connectors.salesforce.org import Org
from airflow_cdc_provider.connectors.salesforce.positions import position_of
from airflow_cdc_provider.connectors.salesforce.stream import drained
from airflow_cdc_provider.connectors.source import News, Partition, StreamItem
from airflow_cdc_provider.core.connections import ConnectionInfo
from airflow_cdc_provider.core.definition import Source
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.positions import Position
from airflow_cdc_provider.core.steps import TableTask
from airflow_cdc_provider.core.tables import Regime, TableSchema

if TYPE_CHECKING:
    import pyarrow as pa


class SalesforceSource:
    """A record holds its id for ever and no other takes it. Salesforce keeps events for 72 hours whoever reads them, so
    there is nothing to acknowledge and nothing to drop."""

    ordering: ClassVar[Regime] = Regime.SINGLE
    has_transactions: ClassVar[bool] = True
    full_images: ClassVar[bool] = False
    exact_snapshot: ClassVar[bool] = False

    def __init__(self, source: Source, connection: ConnectionInfo, replicator: str) -> None:
        self.options = read_options(source.options)
        self.org = Org(connection, self.options, replicator)

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        return find_problems(self.org, tables)

    def identity(self) -> dict[str, str]:
        return self.org.identity()

    def tables(self) -> list[TableSchema]:
        """The objects that the channel carries."""
        return tables_of(self.org, sorted(read_channel(self.org.rest, self.options.channel).entities))

    def open_stream(self, tables: Sequence[str]) -> Position:
        """Behind everything that happened up to now. In a quiet channel this takes up to five minutes."""
        with self.org.pubsub.connected() as connection:
            return position_of(self.options.channel, connection.newest(self.options.channel))

    def news(self, position: Position, tables: Sequence[str]) -> News:
        with self.org.pubsub.connected() as connection:
            return news_behind(connection, self.options, position, time.time())

    def acknowledge(self, position: Position) -> None:
        """Salesforce forgets by its own clock."""

    def drop_stream(self) -> None:
        """Salesforce keeps nothing for a reader."""

    def partitions(self, lo: Position, limit: Position) -> list[Partition]:
        """A channel is one order of events; a second reader would pay for them twice."""
        return [Partition(lo, limit, {})]

    def read(self, partition: Partition, tables: Sequence[TableTask], epoch: int) -> Iterator[StreamItem | Undecodable]:
        refuse_rules(tables)
        with self.org.pubsub.connected() as connection:
            yield from drained(connection, self.org.rest, self.options, partition.lo, tables, epoch)

    def read_share(self, share: str, schema: TableSchema) -> Iterator[pa.Table]:
        """The rows of one share of a copy, in the table's types. Runs wherever Spark's task runs."""
        return read_share(self.org, share, schema)

    def copy(self, table: TableTask, epoch: int, sealed: Position) -> AbstractContextManager[PagedCopy]:
        """``sealed``: the end of the last sealed window, where the copy stands."""
        return open_copy(self.org, table, epoch, sealed)
