"""PostgreSQL as a source connector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_cdc_provider.connectors.source import Copy, SourceStatus, SplitRead, StreamItem, StreamSplit
from airflow_cdc_provider.connectors.source_features import SourceObject, TableSnapshot
from airflow_cdc_provider.connectors.sources.postgres.capacity import read_capacity
from airflow_cdc_provider.connectors.sources.postgres.catalog import (
    exists,
    read_catalog,
    read_comments,
    read_identity,
    read_other_kinds,
    table_names,
)
from airflow_cdc_provider.connectors.sources.postgres.check import find_problems
from airflow_cdc_provider.connectors.sources.postgres.check_tables import sent_problems
from airflow_cdc_provider.connectors.sources.postgres.client import PostgresClient
from airflow_cdc_provider.connectors.sources.postgres.copy import open_copy
from airflow_cdc_provider.connectors.sources.postgres.dead_letters import reread
from airflow_cdc_provider.connectors.sources.postgres.identities import (
    had_rows_when_attached,
    new_files_by,
    read_identities,
    with_memberships,
    with_rewritten_additions,
    without_streamed,
)
from airflow_cdc_provider.connectors.sources.postgres.options import read_options
from airflow_cdc_provider.connectors.sources.postgres.own_objects import find_objects, remove_tables, take_objects
from airflow_cdc_provider.connectors.sources.postgres.proofs import SnapshotProofs
from airflow_cdc_provider.connectors.sources.postgres.publication import memberships
from airflow_cdc_provider.connectors.sources.postgres.publication_settings import stream_settings
from airflow_cdc_provider.connectors.sources.postgres.refused import encoding_problems, refused_problems
from airflow_cdc_provider.connectors.sources.postgres.sizes import read_sizes
from airflow_cdc_provider.connectors.sources.postgres.splits import read_split, split_of, under_view
from airflow_cdc_provider.connectors.sources.postgres.stream import ReplicationSlot
from airflow_cdc_provider.connectors.sources.postgres.table_facts import read_publication, read_role, read_table_facts
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.postgres_access import tls_warnings
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem, of_table
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.log.retained_log import RetainedLog
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.spec.other_kinds import OtherKind
from airflow_cdc_provider.core.table.identity import TableIdentity, UnloggedChanges
from airflow_cdc_provider.core.table.reported_changes import Report, ReportedChanges
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.special_values import POSTGRESQL, Specials, may_hold
from airflow_cdc_provider.core.table.table_size import TableSize

if TYPE_CHECKING:
    import pyarrow as pa

UNSENT = "changes that the server does not send are lost: a resync follows when it sends all again"


class PostgresSource:
    """One database, one publication, one slot. The replica identity of a table determines whether images are full."""

    unseen: ClassVar[str] = (
        "types that print a stored value as another text: "
        'docs/guides/postgresql.md, "Changes that are not in the stream"'
    )
    reported_changes: ClassVar[ReportedChanges] = ReportedChanges(
        add_column=Report.STREAM,
        filled_column=Report.STREAM,
        drop_column=Report.STREAM,
        replace_column=Report.CATALOG,
        rename_column=Report.STREAM,
        widen=Report.STREAM,
        narrow=Report.STREAM,
        rewrite=Report.COMPARED,
        change_key=Report.STREAM,
        truncate=Report.STREAM,
        rename_table=Report.STREAM,
    )
    has_transactions: ClassVar[bool] = True
    announces_columns: ClassVar[bool] = True
    exact_snapshot: ClassVar[bool] = True
    duplicates_within: ClassVar[timedelta] = timedelta(0)

    def __init__(self, source: Source, connection: ConnectionInfo, replicator: str) -> None:
        self.given_options = source.options
        self.options = read_options(source.options, replicator)
        self.client = PostgresClient(connection, replicator)
        self.stream = ReplicationSlot(self.client, self.options)

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        return find_problems(self.client, self.options, tables)

    def refused(self, tables: Sequence[TableTask]) -> Mapping[str, Problem]:
        names = [task.name_in_source for task in tables]
        with self.client.session("check") as connection:
            facts = read_table_facts(connection, self.options.publication, names)
            catalog = read_catalog(connection, names).tables
            role = read_role(connection)
            publication = read_publication(connection, self.options.publication)
            encoding = connection.info.parameter_status("server_encoding") or ""
        found: dict[str, Problem] = {}
        for task in tables:
            name = task.name_in_source
            if name not in facts:
                continue
            problems = [*encoding_problems(encoding, self.client.location)]
            problems += refused_problems(task, facts[name], catalog.get(name), role)
            if publication:
                sent = sent_problems(publication, self.options.publication, facts[name], self.client.location)
                problems += [replace(problem, data=problem.data or UNSENT) for problem in sent]
            for problem in of_table(task.table, problems):
                found.setdefault(task.table, problem)
        return found

    def other_kinds(self) -> Mapping[str, OtherKind]:
        with self.client.session("describe") as connection:
            return read_other_kinds(connection)

    def tls_warnings(self) -> list[Problem]:
        return tls_warnings(self.client.info)

    def identity(self) -> dict[str, str]:
        with self.client.session("identity") as connection:
            return read_identity(connection)

    def tables(self) -> list[TableSchema]:
        with self.client.session("describe") as connection:
            return [table.schema for table in read_catalog(connection).tables.values()]

    def is_dropped(self, table: str, identity: TableIdentity | None) -> bool:
        with self.client.session("describe") as connection:
            return not exists(connection, table, identity.table if identity else "")

    def present_names(self, tables: Mapping[str, TableIdentity | None]) -> Mapping[str, str]:
        if not (oids := {table: int(identity.table) for table, identity in tables.items() if identity}):
            return {}
        with self.client.session("describe") as connection:
            names = table_names(connection, list(oids.values()))
        return {table: name for table, oid in oids.items() if (name := names.get(oid))}

    def renames_hidden(self) -> Problem | None:
        """Each login can read the ids of tables."""
        return None

    @staticmethod
    def propose_options(
        replicator: str, connection: ConnectionInfo, given: Mapping[str, Any], patterns: Sequence[str]
    ) -> Mapping[str, Any]:
        return {"publication": f"cdc_{replicator}"}

    def sizes(self, tables: Sequence[str]) -> Mapping[str, TableSize]:
        with self.client.session("describe") as connection:
            return read_sizes(connection, tables)

    def copies_at_once(self) -> int:
        """Limited by the server's free replication slots and senders."""
        with self.client.session("capacity") as connection:
            return read_capacity(connection, self.options.slot).copies

    def may_hold(self, column: Column) -> Specials:
        return may_hold(column, POSTGRESQL)

    def open_stream(self, tables: Sequence[str]) -> Position:
        return self.stream.open(tables)

    def status(self, position: Position, tables: Sequence[str]) -> SourceStatus:
        return self.stream.status(position, tables)

    def retained_log(self, position: Position | None) -> RetainedLog:
        """The WAL from the slot's ``restart_lsn`` on."""
        return self.stream.retained_log()

    def acknowledge(self, position: Position) -> None:
        self.stream.acknowledge(position)

    def drop_stream(self) -> None:
        self.stream.drop()

    def objects(self) -> list[SourceObject]:
        return find_objects(self.client, self.options)

    def remove_objects(self, others: Sequence[Source]) -> None:
        if self.options.publication not in [read_options(other.options, "").publication for other in others]:
            remove_tables(self.client, self.options)

    def take_objects(self, former: str) -> bool:
        former_slot = read_options(self.given_options, former).slot
        take_objects(self.client, self.options, former, former_slot)
        return former_slot != self.options.slot

    def comments(self, tables: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        with self.client.session("describe") as connection:
            return read_comments(connection, tables)

    def identities(self, tables: Sequence[str]) -> Mapping[str, TableIdentity]:
        with self.client.session("describe") as connection:
            catalog = read_catalog(connection, tables)
            identities = read_identities(connection, list(catalog.tables.values()), catalog.domains)
            members = memberships(connection, self.options.publication, list(identities))
            settings = stream_settings(connection, self.options.publication, catalog.tables.values())
            return with_memberships(identities, members, settings)

    def not_streamed(
        self, table: str, position: Position, now: TableIdentity, changes: UnloggedChanges, truncated: bool
    ) -> UnloggedChanges:
        changes = with_rewritten_additions(changes, now)
        with self.client.session("describe") as connection:
            non_empty = [
                now.partitions[oid].name
                for oid in changes.attached
                if had_rows_when_attached(connection, now.partitions[oid].name, oid)
            ]
            if changes.rewritten:
                transactions = self.stream.truncates(connection, position, int(now.table))
                if now.table in now.partitions:
                    truncated = truncated or bool(transactions)
                else:  # a TRUNCATE of one partition is not in the stream
                    truncated = bool(transactions) and new_files_by(connection, now.partitions, transactions)
        return without_streamed(changes, truncated, non_empty)

    def splits(self, lo: Position, limit: Position) -> list[StreamSplit]:
        """One split per window, because only one session at a time can read a slot."""
        return [StreamSplit(lo, limit, {})]

    def read(self, split: StreamSplit, tables: Sequence[TableTask], epoch: int) -> Iterator[StreamItem]:
        return self.stream.read(split, tables, epoch)

    def reread(self, record: ChangeRecord, table: TableTask, schema: TableSchema) -> list[ChangeRecord]:
        return reread(record, table, schema)

    def copy(self, table: TableTask, epoch: int, sealed: Position, cores: int) -> AbstractContextManager[Copy]:
        """The anchor is the LSN of the exported snapshot."""
        return open_copy(self.client, self.options.publication, table, epoch, cores)

    @contextmanager
    def snapshot(self, table: TableTask, epoch: int, sealed: Position, cores: int) -> Iterator[TableSnapshot]:
        with open_copy(self.client, self.options.publication, table, epoch, cores, lasting=False) as copy:
            provable = not split_of(copy.read.splits[0]).viewed.limited
            yield TableSnapshot(copy, SnapshotProofs(self.client, table, copy) if provable else None)

    def read_split(self, split: str, schema: TableSchema) -> Iterator[pa.Table]:
        return read_split(self.client, split, schema)

    def under_view(self, read: SplitRead, view: SplitRead) -> SplitRead:
        return under_view(read, view)
