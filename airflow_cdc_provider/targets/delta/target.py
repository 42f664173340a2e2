"""The state of Delta tables, and fences, without a JVM."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem, StagingUnavailable, TargetUnavailable
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.storage.locations import FOLDER, parse_location
from airflow_cdc_provider.core.storage.stores import store_tls_warnings
from airflow_cdc_provider.core.table.alterations import Alteration
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.published_cut import Cut
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.open_store import open_store
from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.common_checks import first_problems
from airflow_cdc_provider.targets.delta import alterations as column_alterations
from airflow_cdc_provider.targets.delta.check import check_tables, exclusive_problems, table_problems
from airflow_cdc_provider.targets.delta.cuts import remove_cuts, write_cut
from airflow_cdc_provider.targets.delta.empty_append import append_empty
from airflow_cdc_provider.targets.delta.history import Commit, TableHistory, newest_record, read_commit, read_history
from airflow_cdc_provider.targets.delta.local_engine.commit import (
    CommitLabel,
    PreparedCommit,
    commit_info,
    content_of,
)
from airflow_cdc_provider.targets.delta.local_engine.log_replay import commit_path, live_rows, read_snapshot
from airflow_cdc_provider.targets.delta.metadata import metadata_of
from airflow_cdc_provider.targets.delta.names import LOG
from airflow_cdc_provider.targets.delta.options import TableFeature
from airflow_cdc_provider.targets.delta.record_text import record_text
from airflow_cdc_provider.targets.delta.storage import error_text, storage_options
from airflow_cdc_provider.targets.delta.time_travel import log_files, oldest_version
from airflow_cdc_provider.targets.delta.unfit import unfit
from airflow_cdc_provider.targets.due_alterations import due_at_once
from airflow_cdc_provider.targets.fencing import superseded, table_changed
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from airflow_cdc_provider.targets.target import EarlierVersion, RowsRead, TargetState
from airflow_cdc_provider.targets.versioned import VersionedTarget

if TYPE_CHECKING:
    import pyarrow

    from airflow_cdc_provider.targets.exact_values import Numbers

HISTORY_COMMITS = (20, 500, None)
"""How many commits of the history are read, in steps: nearly always one of the newest is ours."""


class DeltaTarget(VersionedTarget):
    """Tables are folders, or prefixes in a bucket, under ``target.location``. ``catalog`` only adds names; the folders
    remain authoritative."""

    def __init__(self, target: Target, connection: ConnectionInfo, replicator: str, log: ChangeLog) -> None:
        self.parsed_location = parse_location(target.location)
        self.location = (
            self.parsed_location.path if self.parsed_location.scheme == FOLDER else target.location.rstrip("/")
        )
        self.connection = connection
        self.catalog = target.catalog
        self.features = tuple(map(TableFeature, target.options.get("table_features", ())))
        self.replicator = replicator
        self.log = log

    @cached_property
    def store(self) -> Store:
        """The target's location as a file store."""
        return open_store(self.location, self.connection)

    def app_id(self, table: str) -> str:
        """The application id under which Delta records the tokens of one table; it never changes."""
        return f"cdc/{self.replicator}/{table}"

    def locate(self, target_table: str) -> str:
        return f"{self.location}/{target_table}"

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        return check_tables(self, tables)

    def refused(self, tables: Sequence[TableTask]) -> Mapping[str, Problem]:
        """A first copy also needs a storage that creates files exclusively, which is tried."""
        new = [task.table for task in tables if task.control is None]
        of_storage = exclusive_problems(self) if new else []
        return first_problems(
            tables, lambda task: [*(of_storage if task.table in new else ()), *table_problems(self, task)]
        )

    def tls_warnings(self) -> list[Problem]:
        return store_tls_warnings(self.location, self.connection)

    def state(self, table: str, target_table: str) -> TargetState:
        with self.translate_errors(target_table):
            delta_table = self.open(target_table)
            return TargetState(exists=False) if delta_table is None else self._read(delta_table, table)

    def existing(self, target_tables: Collection[str]) -> Collection[str]:
        """Folders with a log; in a bucket, prefixes with any file."""
        with self.translate_errors("*"):
            if self.parsed_location.scheme == FOLDER:
                return {name for name in target_tables if Path(self.locate(name), LOG).is_dir()}
            return set(self.store.names("")) & set(target_tables)

    def oldest_token(self, table: str, target_table: str) -> int:
        with self.translate_errors(target_table):
            delta_table = self.open(target_table)
            version = None if delta_table is None else oldest_version(log_files(delta_table))
            if delta_table is None or version is None:
                return 0
            delta_table.load_as_version(version)
            return delta_table.transaction_version(self.app_id(table)) or 0

    def version_at_or_before(self, table: str, target_table: str, window: int) -> EarlierVersion | None:
        with self.translate_errors(target_table):
            delta_table = self.open(target_table)
            oldest = None if delta_table is None else oldest_version(log_files(delta_table))
            if delta_table is None or oldest is None:
                return None
            earliest: EarlierVersion | None = None
            for commit in self._commits(delta_table, table):
                record = commit.record
                if record is None or record.window > window or commit.version < oldest:
                    continue
                if earliest is not None and record.window != earliest.control.window:
                    break
                earliest = EarlierVersion(commit.version, self.logged(table, record))
            return earliest

    def control_at(self, table: str, target_table: str, version: int) -> ControlRecord | None:
        with self.translate_errors(target_table):
            record = read_history(self._commits(self.open(target_table), table), version).record
            return record and self.logged(table, record)

    def restore_version(self, target_table: str, expected: TargetState, version: int) -> None:
        from airflow_cdc_provider.targets.delta.earlier_version import restore_files
        from airflow_cdc_provider.targets.delta.shared_rows import restore_own_rows

        assert expected.control is not None
        if expected.shared:
            return restore_own_rows(self, target_table, expected, version)
        with self.unchanged(target_table, expected, expected.control.table):
            restore_files(self, target_table, expected, version)

    def publish_cut(self, cut: Cut) -> None:
        write_cut(self.store, cut)

    def release(self, table: str, target_table: str, identity: str | None = None) -> None:
        """The control records are part of the commits of the table."""

    def withdraw_cut(self) -> None:
        remove_cuts(self.store, self.replicator)

    def drop(self, target_table: str, identity: str) -> None:
        """A table whose log was removed in part cannot be read: it is what an interrupted call has left."""
        from deltalake.exceptions import DeltaError

        with self.translate_errors(target_table):
            try:
                delta_table = self.open(target_table)
            except DeltaError:
                delta_table = None
            if delta_table is None or str(delta_table.metadata().id) == identity:
                self.store.delete(target_table)

    def has_at_most_rows(self, target_table: str, rows: int) -> bool:
        """Whether the log counts the rows of every file, and at most ``rows`` in all."""
        with self.translate_errors(target_table):
            delta_table = self.open(target_table)
            counts = [] if delta_table is None else delta_table.get_add_actions(flatten=True)["num_records"].to_pylist()
            return None not in counts and sum(counts) <= rows

    def row_count(self, target_table: str, state: TargetState) -> int | None:
        """From the statistics in the log, and the column of the shard in files with rows of several copies."""
        from airflow_cdc_provider.targets.delta.shared_rows import count_own_rows

        with self.translate_errors(target_table):
            try:
                if state.shared:
                    return count_own_rows(self.store, target_table, state)
                return live_rows(read_snapshot(self.store, target_table))
            except NeedsSpark:
                return None

    def count_rows(self, target_table: str, read: RowsRead, rows: pyarrow.Table) -> Sequence[int]:
        from airflow_cdc_provider.targets.delta.local_engine.row_reads import count_rows

        with self.translate_errors(target_table):
            return count_rows(self.store, target_table, read, rows)

    def live_rows(
        self, target_table: str, read: RowsRead, keys: pyarrow.Table, columns: pyarrow.Schema
    ) -> tuple[Numbers, pyarrow.Table]:
        from airflow_cdc_provider.targets.delta.local_engine.row_reads import live_rows_of

        with self.translate_errors(target_table):
            return live_rows_of(self.store, target_table, read, keys, columns)

    def rows_written(self, target_table: str, record: ControlRecord) -> int:
        """From the commit with this record. Raises TargetUnavailable (TGT023)."""
        with self.translate_errors(target_table):
            for entry in self.open(target_table).history():
                commit = read_commit(entry, self.replicator, record.table)
                if commit.record is not None and commit.record.nonce == record.nonce:
                    return int(entry["operationMetrics"].get("numOutputRows", 0))
        raise TargetUnavailable.of("TGT023", "our commit is not in the table's history", self.locate(target_table))

    def commits_since_checkpoint(self, target_table: str) -> int:
        """Number of commits after the last checkpoint."""
        from airflow_cdc_provider.targets.delta.local_engine.log_replay import last_checkpoint

        with self.translate_errors(target_table):
            checkpoint = last_checkpoint(self.store, target_table)
            return int(self.open(target_table).version()) - (int(checkpoint["version"]) if checkpoint else -1)

    def write_checkpoint(self, target_table: str) -> None:
        """Also deletes the commits that the table's own retention settings allow to delete."""
        with self.translate_errors(target_table):
            delta_table = self.open(target_table)
            delta_table.create_checkpoint()
            delta_table.cleanup_metadata()

    def open(self, target_table: str) -> Any:
        """A ``deltalake.DeltaTable`` at its newest version, or None."""
        from deltalake import DeltaTable

        path = self.locate(target_table)
        if self.parsed_location.scheme == FOLDER and not Path(path, "_delta_log").is_dir():
            return None
        options = storage_options(self.parsed_location, self.connection)
        if not DeltaTable.is_deltatable(path, options):
            return None
        return DeltaTable(path, storage_options=options)

    @contextlib.contextmanager
    def unchanged(self, target_table: str, expected: TargetState, table: str) -> Iterator[Any]:
        with self.translate_errors(target_table):
            delta_table = self.open(target_table)
            if delta_table is None or not self._is_unchanged(delta_table, expected, table):
                raise table_changed(table, self.locate(target_table), expected)
            yield delta_table

    def append_empty(self, opened: Any, record: ControlRecord) -> None:
        """One append of no rows, never retried by the library; to a table with a feature that the library cannot write,
        a commit of our own."""
        if TableFeature.TYPE_WIDENING.value in (opened.protocol().writer_features or ()):
            self._commit(opened, record, ())
        else:
            append_empty(opened, self.app_id(record.table), record)

    def statements(self, target_table: str, alterations: Sequence[Alteration]) -> tuple[str, ...] | None:
        return column_alterations.statements(self.locate(target_table), alterations, self.features)

    def alter(
        self, target_table: str, expected: TargetState, record: ControlRecord, alterations: Sequence[Alteration]
    ) -> ControlRecord:
        """In one commit of the log."""

        def commit(opened: Any, record: ControlRecord) -> None:
            before = metadata_of(opened)
            due = due_at_once(self.locate(target_table), column_alterations.names(before), alterations)
            after = column_alterations.altered(before, due)
            protocol = [] if after.protocol == before.protocol else [{"protocol": after.protocol}]
            self._commit(opened, record, [*protocol, {"metaData": after.metadata}])

        return self.commit_empty(target_table, expected, record, commit)

    def _commit(self, opened: Any, record: ControlRecord, actions: Sequence[Mapping[str, Any]]) -> None:
        """On top of the version that was opened. Raises Fenced if another commit came first."""
        label = CommitLabel(self.app_id(record.table), record.token, record_text(record))
        info = commit_info("ALTER TABLE" if actions else "WRITE", {}, {}, opened.version(), label)
        target_table = opened.table_uri.rstrip("/").rpartition("/")[2]
        path = commit_path(target_table, opened.version() + 1)
        if not PreparedCommit(self.store, path, content_of(info, label, actions), 0, 0, 0).commit():
            raise superseded(record, f"version {opened.version() + 1}")

    def _is_unchanged(self, delta_table: Any, expected: TargetState, table: str) -> bool:
        if delta_table.transaction_version(self.app_id(table)) != expected.token:
            return False
        if delta_table.version() == expected.version or not expected.shared:
            return bool(delta_table.version() == expected.version)
        current = self._read(delta_table, table)  # other copies may have committed, or others have restored the table
        return (current.control, current.restored) == (expected.control, expected.restored)

    def _read(self, delta_table: Any, table: str) -> TargetState:
        version, identity = delta_table.version(), str(delta_table.metadata().id)
        token = delta_table.transaction_version(self.app_id(table))
        if token is None:
            shared = self._is_shared(delta_table)
            return TargetState(not shared, version=version, identity=identity, shared=shared)
        history = self._read_history(delta_table, table)
        control = history.record
        if not history.restored:
            control = self.log.control(table, token) or control
        elif control is not None:
            control = self.logged(table, control)
        shared = control is not None and control.shared
        schema = control.schema if control and not history.restored else None
        where = self.locate(delta_table.table_uri.rstrip("/").rpartition("/")[2])
        found = unfit(delta_table, where, schema, shared)
        return TargetState(True, control, version, identity, token, history.restored, shared, found)

    def _is_shared(self, delta_table: Any) -> bool:
        """Whether other copies of this replicator are in the table, and share it."""
        for limit in HISTORY_COMMITS:
            if record := newest_record(delta_table.history(limit), self.replicator):
                return record.shared
        return False

    def _read_history(self, delta_table: Any, table: str) -> TableHistory:
        history = TableHistory(None, restored=False, complete=False)
        for limit in HISTORY_COMMITS:
            history = read_history(self._commits(delta_table, table, limit))
            if history.complete:
                break
        return history

    def _commits(self, delta_table: Any, table: str, limit: int | None = None) -> list[Commit]:
        return [read_commit(entry, self.replicator, table) for entry in delta_table.history(limit)]

    @contextlib.contextmanager
    def translate_errors(self, target_table: str) -> Iterator[None]:
        """Raises errors of the library and the storage as TargetUnavailable (TGT010)."""
        from deltalake.exceptions import DeltaError

        try:
            yield
        except (DeltaError, OSError, StagingUnavailable) as error:
            raise TargetUnavailable.of(
                "TGT010",
                "the Delta table cannot be read",
                where=self.locate(target_table),
                found=error_text(error),
                do="check the permissions and the state of the target; the next run tries again",
            ) from error
