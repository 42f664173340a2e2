"""What stands in an Iceberg table, and a fence, without a JVM."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem, TargetUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.published_cut import Cut
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.core.table.special_values import NONE, Specials
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets.fencing import cannot_go_back, changed_since, claimed, is_ours, left_no_trace
from airflow_cdc_provider.targets.iceberg.catalog import CatalogLocation, catalog_location, library_properties
from airflow_cdc_provider.targets.iceberg.check import check_tables
from airflow_cdc_provider.targets.iceberg.commits import CURSOR_TAG, append_nothing, publish, restore_version
from airflow_cdc_provider.targets.iceberg.cuts import write_cut
from airflow_cdc_provider.targets.iceberg.history import (
    SnapshotEntry,
    TableHistory,
    first_behind,
    read_history,
    record_at,
)
from airflow_cdc_provider.targets.iceberg.record_text import own_record
from airflow_cdc_provider.targets.iceberg.row_counts import live_rows
from airflow_cdc_provider.targets.naming import default_name
from airflow_cdc_provider.targets.target import EarlierVersion, TargetState


class IcebergTarget:
    """Tables in one namespace of one catalog."""

    def __init__(self, target: Target, connection: ConnectionInfo, replicator: str, log: ChangeLog) -> None:
        self.target = target
        self.connection = connection
        self.replicator = replicator
        self.log = log

    @cached_property
    def place(self) -> CatalogLocation:
        """Raises CheckFailed (CON040) where the connection says what is not allowed."""
        return catalog_location(self.target, self.connection)

    def table_name(self, source_table: str) -> str:
        return default_name(source_table)

    def locate(self, target_table: str) -> str:
        return f"{self.place.name}.{self.place.namespace}.{target_table}"

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        return check_tables(self, tables)

    def refused(self, column: Column, in_key: bool, value: str) -> str:
        return ""

    def unsupported_values(self, column: Column, in_key: bool) -> Specials:
        return NONE

    def state(self, table: str, target_table: str) -> TargetState:
        """``version`` is the id of the current snapshot, ``identity`` the table's UUID."""
        with self._answers(target_table), self.open(target_table) as (_, opened):
            return TargetState(exists=False) if opened is None else self._read(opened, table)

    def row_count(self, target_table: str, held: TargetState) -> int | None:
        """By the table's manifests."""
        with self._answers(target_table), self.open(target_table) as (_, opened):
            return None if opened is None else live_rows(opened.scan().plan_files())

    def oldest_token(self, table: str, target_table: str) -> int:
        with self._answers(target_table), self.open(target_table) as (_, opened):
            records = (entry.record for entry in self._entries(opened, table).values()) if opened else ()
            return min((record.token for record in records if record is not None), default=0)

    def version_at_or_before(self, table: str, target_table: str, window: int) -> EarlierVersion | None:
        with self._answers(target_table), self.open(target_table) as (_, opened):
            if opened is None:
                return None
            found = first_behind(self._entries(opened, table), opened.metadata.current_snapshot_id, window)
        return EarlierVersion(found[0], self.log.control(table, found[1].token) or found[1]) if found else None

    def control_at(self, table: str, target_table: str, version: int) -> ControlRecord | None:
        with self._answers(target_table), self.open(target_table) as (_, opened):
            record = record_at(self._entries(opened, table), version)
        return record and (self.log.control(table, record.token) or record)

    def restore_version(self, target_table: str, expected: TargetState, version: int) -> None:
        assert expected.control is not None
        moved = changed_since(expected.control.table, self.locate(target_table), expected)
        with self._answers(target_table), self.open(target_table) as (catalog, opened):
            if opened is None or not self._still(opened, expected, expected.control.table):
                raise moved
            if opened.snapshot_by_id(version) is None:
                raise cannot_go_back(self.locate(target_table), f"snapshot {version}", "the snapshot has expired")
            try:
                failpoint("restore.before")
                restore_version(catalog, opened, version)
                failpoint("restore.after")
            except Exception as error:  # as below; what is done already is found done by the next try
                if _refused(error):
                    raise moved from error
                raise

    def publish_cut(self, cut: Cut) -> None:
        with self._answers(cut.tables[0].target), self.open(cut.tables[0].target) as (catalog, _):
            write_cut(catalog, self.place.namespace, cut)

    def fence(self, target_table: str, expected: TargetState, record: ControlRecord) -> ControlRecord:
        """Commit ``record`` without data, on condition that the table is still as ``expected``: a snapshot that adds
        nothing, on top of the one expected, and the catalog compares. A lost answer is read back."""
        record = claimed(self.log, record, expected)
        for _ in range(2):
            with self._answers(target_table), self.open(target_table) as (catalog, opened):
                if opened is None or not self._still(opened, expected, record.table):
                    raise changed_since(record.table, self.locate(target_table), expected)
                try:
                    failpoint("fence.before")
                    append_nothing(catalog, opened, record)
                    failpoint("fence.after")
                except Exception:  # whatever the library raised, only the table can tell whether the commit stands
                    if is_ours(self.state(record.table, target_table), record):
                        return record
                else:
                    return record
        raise left_no_trace(self.locate(target_table))

    def publish(
        self,
        target_table: str,
        expected: TargetState,
        record: ControlRecord,
        columns: Mapping[str, str | None] | None = None,
    ) -> bool:
        """Make what stands on the record's own branch the table, on condition that the table is still as ``expected``.
        False where it is not: nothing has changed then. A lost answer is read back."""
        with self._answers(target_table), self.open(target_table) as (catalog, opened):
            if opened is None or not self._still(opened, expected, record.table):
                return False
            try:
                failpoint("publish.before")
                publish(catalog, opened, record, columns or {})
                failpoint("publish.after")
            except Exception as error:  # as above
                if not is_ours(self.state(record.table, target_table), record) and not _refused(error):
                    raise
        return is_ours(self.state(record.table, target_table), record)

    def summary(self, target_table: str, record: ControlRecord) -> dict[str, str]:
        """What the snapshots that carry ``record`` say of themselves; the one that wrote the rows has the last word."""
        with self._answers(target_table), self.open(target_table) as (_, opened):
            said: dict[str, str] = {}
            for one in reversed(opened.metadata.snapshots):
                found = _record_of(one, {}, record.replicator, record.table)
                if found is not None and found.nonce == record.nonce:
                    said |= one.summary.additional_properties
            return said

    @contextlib.contextmanager
    def open(self, target_table: str) -> Iterator[tuple[Any, Any]]:
        """The catalog and the table as it is now; None for a table that is not there."""
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NoSuchTableError

        if self.place.warehouse and not Path(self.place.file).is_file():
            yield None, None
            return
        catalog = load_catalog(self.place.name, **library_properties(self.place))
        with contextlib.closing(catalog):
            try:
                opened = catalog.load_table((self.place.namespace, target_table))
            except NoSuchTableError:
                opened = None
            yield catalog, opened

    def _still(self, opened: Any, expected: TargetState, table: str) -> bool:
        found = self._read(opened, table)
        return (found.identity, found.version, found.token) == (expected.identity, expected.version, expected.token)

    def _read(self, opened: Any, table: str) -> TargetState:
        metadata = opened.metadata
        found = self._standing(opened, table)
        control = found.record
        if control is not None:
            control = self.log.control(table, control.token) or control
        identity = str(metadata.table_uuid)
        return TargetState(True, control, metadata.current_snapshot_id, identity, found.token, found.restored)

    def _standing(self, opened: Any, table: str) -> TableHistory:
        metadata = opened.metadata
        main_line = [one.snapshot_id for one in metadata.snapshot_log]
        tagged = [ref.snapshot_id for name, ref in metadata.refs.items() if name == CURSOR_TAG]
        return read_history(self._entries(opened, table), metadata.current_snapshot_id, (*main_line, *tagged))

    def _entries(self, opened: Any, table: str) -> dict[int, SnapshotEntry]:
        properties = opened.metadata.properties
        return {
            one.snapshot_id: SnapshotEntry(one.parent_snapshot_id, _record_of(one, properties, self.replicator, table))
            for one in opened.metadata.snapshots
        }

    @contextlib.contextmanager
    def _answers(self, target_table: str) -> Iterator[None]:
        from pyiceberg.exceptions import RESTError
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except (RESTError, SQLAlchemyError, OSError) as error:
            raise TargetUnavailable(
                Problem(
                    "TGT010",
                    "the Iceberg table cannot be read",
                    where=self.locate(target_table),
                    found=f"{type(error).__name__}: {str(error).splitlines()[0][:300]}",
                    do="look at the catalog, its connection and its permissions; the next run tries again",
                )
            ) from error


def _record_of(snapshot: Any, properties: Mapping[str, str], replicator: str, table: str) -> ControlRecord | None:
    summary = snapshot.summary.additional_properties if snapshot.summary else {}
    return own_record(summary, properties, replicator, table)


def _refused(error: Exception) -> bool:
    """The catalog says that nothing was committed."""
    from pyiceberg.exceptions import CommitFailedException

    return isinstance(error, CommitFailedException)
