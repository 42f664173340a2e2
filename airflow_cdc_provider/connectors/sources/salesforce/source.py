"""Salesforce as a source connector: one channel of change events, copies over Bulk API 2.0 or REST."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from airflow_cdc_provider.connectors.source import Copy, KeepsNoState, SourceStatus, StreamItem, StreamSplit
from airflow_cdc_provider.connectors.sources.salesforce.carried import (
    identities,
    not_carried,
    omitted,
    sees_every_record_of,
)
from airflow_cdc_provider.connectors.sources.salesforce.channel_status import read_status
from airflow_cdc_provider.connectors.sources.salesforce.channels import ChannelFacts, read_channel
from airflow_cdc_provider.connectors.sources.salesforce.check import find_problems
from airflow_cdc_provider.connectors.sources.salesforce.check_tables import require_supported_rules
from airflow_cdc_provider.connectors.sources.salesforce.copy import open_copy, read_split
from airflow_cdc_provider.connectors.sources.salesforce.dead_letters import reread
from airflow_cdc_provider.connectors.sources.salesforce.options import REPEATS_WITHIN, RETENTION, SalesforceOptions
from airflow_cdc_provider.connectors.sources.salesforce.org import Org
from airflow_cdc_provider.connectors.sources.salesforce.positions import (
    channel_position,
    committed_before,
    position_of,
    require_instance,
)
from airflow_cdc_provider.connectors.sources.salesforce.refetch import refetch
from airflow_cdc_provider.connectors.sources.salesforce.stream import read_stream
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.log.retained_log import RetainedLog
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.table.identity import TableIdentity, UnloggedChanges
from airflow_cdc_provider.core.table.reported_changes import Report, ReportedChanges
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.special_values import SALESFORCE, Specials, may_hold
from airflow_cdc_provider.core.table.table_size import TableSize

if TYPE_CHECKING:
    import pyarrow as pa


class SalesforceSource(KeepsNoState):
    """Record ids are never reused."""

    unseen: ClassVar[str] = (
        "values of formulas, of new fields and of fields of another type in records without an event: "
        'docs/guides/salesforce.md, "What the org does not show"'
    )
    reported_changes: ClassVar[ReportedChanges] = ReportedChanges(
        add_column=Report.STREAM,
        filled_column=Report.PARTIAL,
        drop_column=Report.STREAM,
        rename_column=Report.NAME,
        widen=Report.STREAM,
        narrow=Report.STREAM,
        rewrite=Report.NONE,
        change_key=Report.IMPOSSIBLE,
        rename_table=Report.NEW_TABLE,
    )
    has_transactions: ClassVar[bool] = True
    exact_snapshot: ClassVar[bool] = False
    duplicates_within: ClassVar[timedelta] = REPEATS_WITHIN

    def __init__(self, source: Source, connection: ConnectionInfo, replicator: str) -> None:
        self.options = from_plain(SalesforceOptions, dict(source.options))
        self.org = Org(connection, self.options, replicator)
        self._channel: ChannelFacts | None = None

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        return find_problems(self.org, tables)

    def refused(self, tables: Sequence[TableTask]) -> Mapping[str, Problem]:
        return not_carried(self.org, self._known_channel(), tables)

    def filtered(self, tables: Sequence[TableTask]) -> Mapping[str, str]:
        return omitted(self.org, tables)

    def identities(self, tables: Sequence[str]) -> Mapping[str, TableIdentity]:
        return identities(self._known_channel(), tables)

    def not_streamed(
        self, table: str, position: Position, now: TableIdentity, changes: UnloggedChanges, truncated: bool
    ) -> UnloggedChanges:
        return changes

    def identity(self) -> dict[str, str]:
        return self.org.identity()

    def tables(self) -> list[TableSchema]:
        """The objects that the channel carries, without those that the user cannot see, that cannot be queried, or that
        have no id."""
        objects = self.org.rest.describe_all(self._read_channel().entities)
        return [entity.schema for entity in objects if entity.copyable]

    def sizes(self, tables: Sequence[str]) -> Mapping[str, TableSize]:
        """Salesforce counts records, not bytes."""
        return {name: TableSize(rows) for name, rows in self.org.rest.record_counts(tables).items()}

    def may_hold(self, column: Column) -> Specials:
        return may_hold(column, SALESFORCE)

    def open_stream(self, tables: Sequence[str]) -> Position:
        """The position after every existing event. In a quiet channel this takes up to five minutes."""
        channel = self.options.channel
        with self.org.pubsub.connected() as connection:
            latest = connection.latest_position(channel)
        at_s = int(self.org.rest.now().timestamp())
        return position_of(channel, replace(latest, instance=self.org.instance, at_s=at_s))

    def time_of(self, position: Position) -> datetime:
        return committed_before(channel_position(position, self.options.channel))

    def status(self, position: Position, tables: Sequence[str]) -> SourceStatus:
        self._require_instance(position)
        with self.org.pubsub.connected() as connection:
            return read_status(connection, self.options, position, time.time(), self.org.rest.now)

    def retained_log(self, position: Position | None) -> RetainedLog:
        return RetainedLog(keeps=RETENTION)

    def splits(self, lo: Position, limit: Position) -> list[StreamSplit]:
        """A channel is one ordered stream. A second reader would count its events against the allocation again."""
        return [StreamSplit(lo, limit, {})]

    def read(self, split: StreamSplit, tables: Sequence[TableTask], epoch: int) -> Iterator[StreamItem]:
        require_supported_rules(tables)
        self._require_instance(split.lo)
        with self.org.pubsub.connected() as connection:
            yield from read_stream(connection, self.org.rest, self.options, split.lo, tables, epoch)

    def reread(self, record: ChangeRecord, table: TableTask, schema: TableSchema) -> list[ChangeRecord]:
        return reread(record, schema, self.org.rest.describe)

    def fetch(self, table: TableTask, schema: TableSchema, records: Sequence[ChangeRecord]) -> Iterator[ChangeRecord]:
        sees_every_record = partial(sees_every_record_of, self.org, table.table)
        return refetch(self.org.rest, schema, records, self.org.rest.describe, sees_every_record)

    def read_split(self, split: str, schema: TableSchema) -> Iterator[pa.Table]:
        """The rows of one split of a copy, in the table's types. Runs in a Spark task."""
        return read_split(self.org, split, schema)

    def copy(self, table: TableTask, epoch: int, sealed: Position, cores: int) -> AbstractContextManager[Copy]:
        """In one split per result page."""
        identity = identities(self._read_channel(), [table.table]).get(table.table)
        return open_copy(self.org, table, epoch, sealed, identity)

    def _read_channel(self) -> ChannelFacts:
        self._channel = read_channel(self.org.rest, self.options.channel)
        return self._channel

    def _known_channel(self) -> ChannelFacts:
        """As it was when the objects were listed: each question about it is one of the org's daily requests."""
        return self._channel or self._read_channel()

    def _require_instance(self, position: Position) -> None:
        channel = self.options.channel
        require_instance(channel_position(position, channel), self.org.instance, channel)
