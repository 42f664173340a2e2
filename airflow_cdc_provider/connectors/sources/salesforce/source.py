"""Salesforce as a source connector: one channel of change events, copies over Bulk API 2.0 or REST."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

from airflow_cdc_provider.connectors.source import Copy, SourceStatus, StreamItem, StreamSplit
from airflow_cdc_provider.connectors.sources.salesforce.channel_status import read_status
from airflow_cdc_provider.connectors.sources.salesforce.channels import read_channel
from airflow_cdc_provider.connectors.sources.salesforce.check import find_problems
from airflow_cdc_provider.connectors.sources.salesforce.check_tables import refuse_rules
from airflow_cdc_provider.connectors.sources.salesforce.copy import open_copy, read_split, tables_of
from airflow_cdc_provider.connectors.sources.salesforce.dead_letters import reread
from airflow_cdc_provider.connectors.sources.salesforce.options import REPEATS_WITHIN, read_options
from airflow_cdc_provider.connectors.sources.salesforce.org import Org
from airflow_cdc_provider.connectors.sources.salesforce.positions import channel_position, position_of, require_instance
from airflow_cdc_provider.connectors.sources.salesforce.stream import drained
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema, described
from airflow_cdc_provider.connectors.sources.salesforce.unlogged_rows import rows_of
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.special_values import SALESFORCE, Specials, may_hold

if TYPE_CHECKING:
    import pyarrow as pa


class SalesforceSource:
    """A record holds its id for ever and no other takes it. Salesforce keeps events for 72 hours whoever reads them, so
    there is nothing to acknowledge and nothing to drop."""

    unseen: ClassVar[str] = (
        "values of formulas, of new fields and of fields of another type in records without an event: "
        'docs/guides/salesforce.md, "What the org does not show"'
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

    def status(self, position: Position, tables: Sequence[str]) -> SourceStatus:
        self._require_instance(position)
        with self.org.pubsub.connected() as connection:
            return read_status(connection, self.options, position, time.time())

    def acknowledge(self, position: Position) -> None:
        """Salesforce forgets by its own clock."""

    def drop_stream(self) -> None:
        """Salesforce keeps nothing for a reader."""

    def partitions(self, lo: Position, limit: Position) -> list[StreamSplit]:
        """A channel is one order of events; a second reader would pay for them twice."""
        return [StreamSplit(lo, limit, {})]

    def read(self, partition: StreamSplit, tables: Sequence[TableTask], epoch: int) -> Iterator[StreamItem]:
        refuse_rules(tables)
        self._require_instance(partition.lo)
        with self.org.pubsub.connected() as connection:
            yield from drained(connection, self.org.rest, self.options, partition.lo, tables, epoch)

    def reread(self, record: ChangeRecord, table: TableTask, schema: TableSchema) -> list[ChangeRecord]:
        return reread(record, schema, self._described)

    def fetch(self, table: TableTask, schema: TableSchema, untold: Sequence[ChangeRecord]) -> Iterator[ChangeRecord]:
        return rows_of(self.org.rest, schema, untold, self._described)

    def read_split(self, share: str, schema: TableSchema) -> Iterator[pa.Table]:
        """The rows of one share of a copy, in the table's types. Runs wherever Spark's task runs."""
        return read_split(self.org, share, schema)

    def copy(self, table: TableTask, epoch: int, sealed: Position, cores: int) -> AbstractContextManager[Copy]:
        """In as many shares as Salesforce makes pages."""
        return open_copy(self.org, table, epoch, sealed)

    def _described(self, entity: str) -> ObjectSchema:
        return described(self.org.rest.describe(entity))

    def _require_instance(self, position: Position) -> None:
        channel = self.options.channel
        require_instance(channel_position(position, channel), self.org.instance, channel)
