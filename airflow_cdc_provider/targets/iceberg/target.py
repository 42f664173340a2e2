"""The state of Iceberg tables, and fences, without a JVM."""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Blocked, Problem, TargetUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.table.alterations import Alteration
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.own_rows import own_rows_of
from airflow_cdc_provider.core.table.published_cut import Cut
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets.common_checks import first_problems
from airflow_cdc_provider.targets.due_alterations import due_at_once
from airflow_cdc_provider.targets.fencing import cannot_restore, has_commit, table_changed
from airflow_cdc_provider.targets.iceberg import alterations as column_alterations
from airflow_cdc_provider.targets.iceberg.catalog import CatalogLocation, catalog_location, pyiceberg_properties
from airflow_cdc_provider.targets.iceberg.check import check_tables, table_problems, unfit
from airflow_cdc_provider.targets.iceberg.commits import (
    CURSOR_TAG,
    alter_columns,
    append_empty_snapshot,
    publish,
    restore_version,
)
from airflow_cdc_provider.targets.iceberg.cuts import remove_cut, write_cut
from airflow_cdc_provider.targets.iceberg.dropped_table import drop_table
from airflow_cdc_provider.targets.iceberg.history import (
    SnapshotEntry,
    TableHistory,
    first_at_or_before,
    read_history,
    record_at,
)
from airflow_cdc_provider.targets.iceberg.record_properties import is_of_shared_table, own_record
from airflow_cdc_provider.targets.iceberg.row_counts import count_own, live_rows
from airflow_cdc_provider.targets.iceberg.store_properties import http_warnings
from airflow_cdc_provider.targets.iceberg.table_files import error_text, table_files
from airflow_cdc_provider.targets.iceberg.uncommitted_table import uncommitted_table
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.target import EarlierVersion, TargetState
from airflow_cdc_provider.targets.versioned import VersionedTarget


class IcebergTarget(VersionedTarget):
    """Tables in one namespace of one catalog.

    ``turns``: for the copies that share a table, by its name."""

    def __init__(self, target: Target, connection: ConnectionInfo, replicator: str, log: ChangeLog) -> None:
        self.target = target
        self.connection = connection
        self.replicator = replicator
        self.log = log
        self.turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    @cached_property
    def catalog_location(self) -> CatalogLocation:
        """Raises CheckFailed (CON040) if the connection has extras that are not allowed."""
        return catalog_location(self.target, self.connection)

    def locate(self, target_table: str) -> str:
        return f"{self.catalog_location.name}.{self.catalog_location.namespace}.{target_table}"

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        return check_tables(self, tables)

    def refused(self, tables: Sequence[TableTask]) -> Mapping[str, Problem]:
        return first_problems(tables, partial(table_problems, self))

    def state(self, table: str, target_table: str) -> TargetState:
        """``version`` is the id of the current snapshot, ``identity`` the table's UUID."""
        with self._translate_errors(target_table), self.open(target_table) as (_, iceberg_table):
            return TargetState(exists=False) if iceberg_table is None else self._read(iceberg_table, table)

    def existing(self, target_tables: Collection[str]) -> Collection[str]:
        from pyiceberg.exceptions import NoSuchNamespaceError

        if self.catalog_location.warehouse and not Path(self.catalog_location.file).is_file():
            return ()
        with self._translate_errors("*"), self._open_catalog() as catalog:
            try:
                listed = catalog.list_tables((self.catalog_location.namespace,))
            except NoSuchNamespaceError:
                return ()
            return {name for *_, name in listed} & set(target_tables)

    def row_count(self, target_table: str, state: TargetState) -> int | None:
        """From the table's manifests, and the column of the shard in files with rows of several copies."""
        own = own_rows_of(state.control)
        if state.shared and own is None:
            return None
        with self._translate_errors(target_table), self.open(target_table) as (_, iceberg_table):
            if iceberg_table is None:
                return None
            return live_rows(iceberg_table.scan().plan_files()) if own is None else count_own(iceberg_table, own)

    def oldest_token(self, table: str, target_table: str) -> int:
        with self._translate_errors(target_table), self.open(target_table) as (_, iceberg_table):
            records = (entry.record for entry in self._entries(iceberg_table, table).values()) if iceberg_table else ()
            return min((record.token for record in records if record is not None), default=0)

    def version_at_or_before(self, table: str, target_table: str, window: int) -> EarlierVersion | None:
        with self._translate_errors(target_table), self.open(target_table) as (_, iceberg_table):
            if iceberg_table is None or self._read(iceberg_table, table).shared:
                return None  # an earlier version would set back the rows of other copies, too
            first = first_at_or_before(
                self._entries(iceberg_table, table), iceberg_table.metadata.current_snapshot_id, window
            )
        return EarlierVersion(first[0], self.logged(table, first[1])) if first else None

    def control_at(self, table: str, target_table: str, version: int) -> ControlRecord | None:
        with self._translate_errors(target_table), self.open(target_table) as (_, iceberg_table):
            record = record_at(self._entries(iceberg_table, table), version)
        return record and self.logged(table, record)

    def restore_version(self, target_table: str, expected: TargetState, version: int) -> None:
        assert expected.control is not None
        table = expected.control.table
        with self.unchanged(target_table, expected, table) as (catalog, iceberg_table):
            if iceberg_table.snapshot_by_id(version) is None:
                raise cannot_restore(self.locate(target_table), f"snapshot {version}", "the snapshot has expired")
            try:
                failpoint("restore.before")
                restore_version(catalog, iceberg_table, version)
                failpoint("restore.after")
            except Exception as error:  # if the restore succeeded and its response was lost, a retry detects it
                if _is_rejected(error):
                    raise table_changed(table, self.locate(target_table), expected) from error
                raise

    def publish_cut(self, cut: Cut) -> None:
        with self._translate_errors(cut.tables[0].target), self.open(cut.tables[0].target) as (catalog, _):
            write_cut(catalog, self.catalog_location.namespace, cut)

    def release(self, table: str, target_table: str, identity: str | None = None) -> None:
        """Nothing to remove: the control records are part of the commits of the table."""

    def withdraw_cut(self) -> None:
        from pyiceberg.exceptions import NoSuchNamespaceError

        if self.catalog_location.warehouse and not Path(self.catalog_location.file).is_file():
            return
        with self._translate_errors("*"), self._open_catalog() as catalog, contextlib.suppress(NoSuchNamespaceError):
            remove_cut(catalog, self.catalog_location.namespace, self.replicator)

    def drop(self, target_table: str, identity: str) -> None:
        with self._translate_errors(target_table), self._open_catalog() as catalog:
            drop_table(catalog, (self.catalog_location.namespace, target_table), identity, self.catalog_location)

    @contextlib.contextmanager
    def unchanged(self, target_table: str, expected: TargetState, table: str) -> Iterator[tuple[Any, Any]]:
        """The catalog and the table."""
        with self._translate_errors(target_table), self.open(target_table) as (catalog, iceberg_table):
            if iceberg_table is None or not self._is_unchanged(iceberg_table, expected, table):
                raise table_changed(table, self.locate(target_table), expected)
            yield catalog, iceberg_table

    def statements(self, target_table: str, alterations: Sequence[Alteration]) -> tuple[str, ...] | None:
        location = self.catalog_location
        table = ".".join(map(quoted, (location.name, location.namespace, target_table)))
        return column_alterations.statements(table, alterations)

    def alter(
        self, target_table: str, expected: TargetState, record: ControlRecord, alterations: Sequence[Alteration]
    ) -> ControlRecord:
        """In one commit."""

        def commit(opened: Any, record: ControlRecord) -> None:
            catalog, iceberg_table = opened
            present = [field.name for field in iceberg_table.schema().fields]
            due = due_at_once(self.locate(target_table), present, alterations)
            alter_columns(catalog, iceberg_table, record, due)

        return self.commit_empty(target_table, expected, record, commit)

    def append_empty(self, opened: Any, record: ControlRecord) -> None:
        """An empty snapshot on top of the expected one, compared by the catalog."""
        catalog, iceberg_table = opened
        restored = self._read(iceberg_table, record.table).restored
        append_empty_snapshot(catalog, iceberg_table, record, restored)

    def publish(
        self,
        target_table: str,
        expected: TargetState,
        record: ControlRecord,
        columns: Mapping[str, str | None] | None = None,
    ) -> bool:
        """Make the record's own branch the table if the table is still in state ``expected``. Returns False, without
        any change, if it is not. If the response is lost, the table is read again."""
        with self._translate_errors(target_table), self.open(target_table) as (catalog, iceberg_table):
            if iceberg_table is None or not self._is_current(iceberg_table, expected, record.table):
                return False
            if columns is None and (found := self._read(iceberg_table, record.table).unfit):
                raise Blocked(found.problem)  # a change of columns is no new version
            try:
                failpoint("publish.before")
                publish(catalog, iceberg_table, record, columns or {})
                failpoint("publish.after")
            except Exception as error:  # as in ``fence``
                if not has_commit(self.state(record.table, target_table), record) and not _is_rejected(error):
                    raise
        return has_commit(self.state(record.table, target_table), record)

    def summary(self, target_table: str, record: ControlRecord) -> dict[str, str]:
        """The merged summaries of the snapshots with ``record``; that of the one with the rows takes precedence."""
        with self._translate_errors(target_table), self.open(target_table) as (_, iceberg_table):
            merged: dict[str, str] = {}
            for snapshot in reversed(iceberg_table.metadata.snapshots):
                own = _record_of(snapshot, {}, record.replicator, record.table)
                if own is not None and own.nonce == record.nonce:
                    merged |= snapshot.summary.additional_properties
            return merged

    @contextlib.contextmanager
    def open(self, target_table: str) -> Iterator[tuple[Any, Any]]:
        """The catalog and the current table, which is None if it does not exist."""
        from pyiceberg.exceptions import NoSuchTableError

        if self.catalog_location.warehouse and not Path(self.catalog_location.file).is_file():
            yield None, None
            return
        with self._open_catalog() as catalog:
            try:
                iceberg_table = catalog.load_table((self.catalog_location.namespace, target_table))
                iceberg_table.io = table_files(iceberg_table.io, iceberg_table.metadata.location)
            except NoSuchTableError:
                iceberg_table = None
            yield catalog, iceberg_table

    @contextlib.contextmanager
    def uncommitted_table(self) -> Iterator[tuple[str, Any]]:
        """Where the REST catalog creates tables, and the access to files there."""
        namespace = self.catalog_location.namespace
        with (
            self._translate_errors("*"),
            self._open_catalog() as catalog,
            uncommitted_table(catalog, namespace) as found,
        ):
            yield found

    def tls_warnings(self) -> list[Problem]:
        return http_warnings(self.catalog_location.uri, self.connection) if self.catalog_location.uri else []

    @contextlib.contextmanager
    def _open_catalog(self) -> Iterator[Any]:
        from pyiceberg.catalog import load_catalog

        catalog = load_catalog(self.catalog_location.name, **pyiceberg_properties(self.catalog_location))
        with contextlib.closing(catalog):
            yield catalog

    def _is_current(self, iceberg_table: Any, expected: TargetState, table: str) -> bool:
        """Whether no commit came after the expected one: a branch has the rows of that version."""
        state = self._read(iceberg_table, table)
        return (state.identity, state.version, state.token) == (expected.identity, expected.version, expected.token)

    def _is_unchanged(self, iceberg_table: Any, expected: TargetState, table: str) -> bool:
        """As ``_is_current``, but other copies in the table may have committed."""
        if self._is_current(iceberg_table, expected, table):
            return True
        return expected.shared and replace(self._read(iceberg_table, table), version=expected.version) == expected

    def _read(self, iceberg_table: Any, table: str) -> TargetState:
        metadata = iceberg_table.metadata
        version, identity = metadata.current_snapshot_id, str(metadata.table_uuid)
        history = self._read_history(iceberg_table, table)
        if history.token is None:
            shared = any(is_of_shared_table(_summary(one), self.replicator) for one in metadata.snapshots)
            return TargetState(not shared, version=version, identity=identity, shared=shared)
        control = history.record and self.logged(table, history.record)
        shared = control is not None and control.shared
        schema = control.schema if control and not history.restored else None
        found = unfit(iceberg_table, self.locate(iceberg_table.name()[-1]), schema, shared)
        return TargetState(True, control, version, identity, history.token, history.restored, shared, found)

    def _read_history(self, iceberg_table: Any, table: str) -> TableHistory:
        metadata = iceberg_table.metadata
        main_line = [entry.snapshot_id for entry in metadata.snapshot_log]
        tagged = [ref.snapshot_id for name, ref in metadata.refs.items() if name.startswith(CURSOR_TAG)]
        return read_history(self._entries(iceberg_table, table), metadata.current_snapshot_id, (*main_line, *tagged))

    def _entries(self, iceberg_table: Any, table: str) -> dict[int, SnapshotEntry]:
        metadata = iceberg_table.metadata
        return {
            snapshot.snapshot_id: SnapshotEntry(
                snapshot.parent_snapshot_id, _record_of(snapshot, metadata.properties, self.replicator, table)
            )
            for snapshot in metadata.snapshots
        }

    @contextlib.contextmanager
    def _translate_errors(self, target_table: str) -> Iterator[None]:
        from pyiceberg.exceptions import RESTError
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except (RESTError, SQLAlchemyError, OSError) as error:
            raise TargetUnavailable.of(
                "TGT010",
                "the Iceberg table cannot be read",
                where=self.locate(target_table),
                found=error_text(error),
                do="check the catalog, its connection and its permissions; the next run tries again",
            ) from error


def _record_of(snapshot: Any, properties: Mapping[str, str], replicator: str, table: str) -> ControlRecord | None:
    return own_record(_summary(snapshot), properties, replicator, table)


def _summary(snapshot: Any) -> Mapping[str, str]:
    return snapshot.summary.additional_properties if snapshot.summary else {}


def _is_rejected(error: Exception) -> bool:
    """The catalog reports that nothing was committed."""
    from pyiceberg.exceptions import CommitFailedException

    return isinstance(error, CommitFailedException)
