"""Salesforce as a source connector: one channel of change events, copies over Bulk API 2.0 or REST."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

from airflow_cdc_provider.connectors.salesforce.channels import read_channel
from airflow_cdc_provider.connectors.salesforce.check import find_problems
from airflow_cdc_provider.connectors.salesforce.check_tables import refuse_rules
from airflow_cdc_provider.connectors.salesforce.copying import open_copy, read_share, tables_of
from airflow_cdc_provider.connectors.salesforce.news import news_behind
from airflow_cdc_provider.connectors.salesforce.options import REPEATS_WITHIN, read_options
from airflow_cdc_provider.connectors.salesforce.org import Org
from airflow_cdc_provider.connectors.salesforce.positions import place_of, position_of, require_instance
from airflow_cdc_provider.connectors.salesforce.put_aside import reread
from airflow_cdc_provider.connectors.salesforce.stream import drained
from airflow_cdc_provider.connectors.salesforce.types import Described, described
from airflow_cdc_provider.connectors.salesforce.untold import rows_of
from airflow_cdc_provider.connectors.source import Copy, News, Partition, StreamItem
from airflow_cdc_provider.core.changes import ChangeRecord
from airflow_cdc_provider.core.connections import ConnectionInfo
from airflow_cdc_provider.core.definition import Source
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.positions import Position
from airflow_cdc_provider.core.special_values import SALESFORCE, Specials, may_hold
from airflow_cdc_provider.core.steps import TableTask
from airflow_cdc_provider.core.tables import Column, TableSchema

if TYPE_CHECKING:
    import pyarrow as pa


class SalesforceSource:
    """A record holds its id for ever and no other takes it. Salesforce keeps events for 72 hours whoever reads them, so
    there is nothing to acknowledge and nothing to drop."""

    unseen: ClassVar[str] = (
        "values of formulas, of new fields and of fields of another type in records without an event: "
        "docs/guides/salesforce.md"
    )
    has_transactions: ClassVar[bool] = True
    exact_snapshot: ClassVar[bool] = False
    repeats_within: ClassVar[timedelta] = REPEATS_WITHIN

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

    def may_hold(self, column: Column) -> Specials:
        return may_hold(column, SALESFORCE)

    def open_stream(self, tables: Sequence[str]) -> Position:
        """Behind everything that happened up to now. In a quiet channel this takes up to five minutes."""
        channel = self.options.channel
        with self.org.pubsub.connected() as connection:
            newest = connection.newest(channel)
        return position_of(channel, replace(newest, instance=self.org.instance))

    def news(self, position: Position, tables: Sequence[str]) -> News:
        self._require_instance(position)
        with self.org.pubsub.connected() as connection:
            return news_behind(connection, self.options, position, time.time())

    def acknowledge(self, position: Position) -> None:
        """Salesforce forgets by its own clock."""

    def drop_stream(self) -> None:
        """Salesforce keeps nothing for a reader."""

    def partitions(self, lo: Position, limit: Position) -> list[Partition]:
        """A channel is one order of events; a second reader would pay for them twice."""
        return [Partition(lo, limit, {})]

    def read(self, partition: Partition, tables: Sequence[TableTask], epoch: int) -> Iterator[StreamItem]:
        refuse_rules(tables)
        self._require_instance(partition.lo)
        with self.org.pubsub.connected() as connection:
            yield from drained(connection, self.org.rest, self.options, partition.lo, tables, epoch)

    def reread(self, record: ChangeRecord, table: TableTask, schema: TableSchema) -> list[ChangeRecord]:
        return reread(record, schema, self._described)

    def fetch(self, table: TableTask, schema: TableSchema, untold: Sequence[ChangeRecord]) -> Iterator[ChangeRecord]:
        return rows_of(self.org.rest, schema, untold, self._described)

    def read_share(self, share: str, schema: TableSchema) -> Iterator[pa.Table]:
        """The rows of one share of a copy, in the table's types. Runs wherever Spark's task runs."""
        return read_share(self.org, share, schema)

    def copy(self, table: TableTask, epoch: int, sealed: Position, cores: int) -> AbstractContextManager[Copy]:
        """In as many shares as Salesforce makes pages."""
        return open_copy(self.org, table, epoch, sealed)

    def _described(self, entity: str) -> Described:
        return described(self.org.rest.describe(entity))

    def _require_instance(self, position: Position) -> None:
        channel = self.options.channel
        require_instance(place_of(position, channel), self.org.instance, channel)
