"""What stands in a Delta table, and a fence, without a JVM."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem, StagingUnavailable, TargetUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.storage.locations import FOLDER, parse_location
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.published_cut import Cut
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.core.table.special_values import NONE, Specials
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.open_store import open_store
from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.delta.check import check_tables
from airflow_cdc_provider.targets.delta.cuts import write_cut
from airflow_cdc_provider.targets.delta.history import Commit, TableHistory, read_commit, read_history
from airflow_cdc_provider.targets.delta.local_engine.log_replay import read_snapshot
from airflow_cdc_provider.targets.delta.record_text import record_text
from airflow_cdc_provider.targets.delta.storage import in_words, storage_options
from airflow_cdc_provider.targets.delta.time_travel import log_files, oldest_version
from airflow_cdc_provider.targets.fencing import cannot_go_back, changed_since, claimed, is_ours, left_no_trace
from airflow_cdc_provider.targets.naming import default_name
from airflow_cdc_provider.targets.target import EarlierVersion, TargetState

HISTORY_COMMITS = (20, 500, None)
"""How far back the history is read, in steps: nearly always one of the newest commits is ours."""


class DeltaTarget:
    """Tables are folders, or prefixes in a bucket, under ``target.location``. ``catalog`` only adds names; the folders
    stay the truth."""

    def __init__(self, target: Target, connection: ConnectionInfo, replicator: str, log: ChangeLog) -> None:
        self.place = parse_location(target.location)
        self.location = self.place.path if self.place.scheme == FOLDER else target.location.rstrip("/")
        self.connection = connection
        self.catalog = target.catalog
        self.replicator = replicator
        self.log = log

    @cached_property
    def store(self) -> Store:
        """The location, as files."""
        return open_store(self.location, self.connection)

    def app_id(self, table: str) -> str:
        """The name under which the commits of one table record their tokens; it never changes."""
        return f"cdc/{self.replicator}/{table}"

    def table_name(self, source_table: str) -> str:
        return default_name(source_table)

    def locate(self, target_table: str) -> str:
        return f"{self.location}/{target_table}"

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        return check_tables(self, tables)

    def refused(self, column: Column, in_key: bool, value: str) -> str:
        return ""

    def unsupported_values(self, column: Column, in_key: bool) -> Specials:
        return NONE

    def state(self, table: str, target_table: str) -> TargetState:
        with self.answers(target_table):
            opened = self.open(target_table)
            return TargetState(exists=False) if opened is None else self._read(opened, table)

    def oldest_token(self, table: str, target_table: str) -> int:
        with self.answers(target_table):
            opened = self.open(target_table)
            version = None if opened is None else oldest_version(log_files(opened))
            if opened is None or version is None:
                return 0
            opened.load_as_version(version)
            return opened.transaction_version(self.app_id(table)) or 0

    def version_at_or_before(self, table: str, target_table: str, window: int) -> EarlierVersion | None:
        with self.answers(target_table):
            opened = self.open(target_table)
            oldest = None if opened is None else oldest_version(log_files(opened))
            if opened is None or oldest is None:
                return None
            found: EarlierVersion | None = None
            for commit in self._commits(opened, table):
                record = commit.record
                if record is None or record.window > window or commit.version < oldest:
                    continue
                if found is not None and record.window != found.control.window:
                    break
                found = EarlierVersion(commit.version, self.log.control(table, record.token) or record)
            return found

    def control_at(self, table: str, target_table: str, version: int) -> ControlRecord | None:
        with self.answers(target_table):
            record = read_history(self._commits(self.open(target_table), table), version).record
            return record and (self.log.control(table, record.token) or record)

    def restore_version(self, target_table: str, expected: TargetState, version: int) -> None:
        from deltalake.exceptions import DeltaError

        with self.answers(target_table):
            opened = self.open(target_table)
            assert expected.control is not None
            if opened is None or not self._still(opened, expected, expected.control.table):
                raise changed_since(expected.control.table, self.locate(target_table), expected)
            try:
                failpoint("restore.before")
                opened.restore(version)
                failpoint("restore.after")
            except DeltaError as error:
                if self.open(target_table).version() != expected.version:
                    raise  # somebody committed meanwhile, or it is done and the answer was lost: the next try tells
                raise cannot_go_back(self.locate(target_table), f"version {version}", in_words(error)) from error

    def publish_cut(self, cut: Cut) -> None:
        write_cut(self.store, cut)

    def is_small(self, target_table: str, rows: int) -> bool:
        """The table's files hold at most so many rows, and say so."""
        with self.answers(target_table):
            opened = self.open(target_table)
            counts = [] if opened is None else opened.get_add_actions(flatten=True)["num_records"].to_pylist()
            return None not in counts and sum(counts) <= rows

    def row_count(self, target_table: str, held: TargetState) -> int | None:
        """By the statistics of the log."""
        with self.answers(target_table):
            snapshot = read_snapshot(self.store, target_table)
            counts = [file.live_rows for file in snapshot.files] if snapshot else [None]
        return None if None in counts else sum(filter(None, counts))

    def rows_written(self, target_table: str, record: ControlRecord) -> int:
        """By the commit that holds this record."""
        with self.answers(target_table):
            for entry in self.open(target_table).history():
                commit = read_commit(entry, self.replicator, record.table)
                if commit.record is not None and commit.record.nonce == record.nonce:
                    return int(entry["operationMetrics"].get("numOutputRows", 0))
        raise TargetUnavailable(Problem("TGT023", "the table's history lacks our commit", self.locate(target_table)))

    def commits_to_read(self, target_table: str) -> int:
        """Behind the last checkpoint."""
        from airflow_cdc_provider.targets.delta.local_engine.log_replay import last_checkpoint

        with self.answers(target_table):
            checkpoint = last_checkpoint(self.store, target_table)
            return int(self.open(target_table).version()) - (int(checkpoint["version"]) if checkpoint else -1)

    def write_checkpoint(self, target_table: str) -> None:
        """And drop the commits that the table's own settings say nobody needs any more."""
        with self.answers(target_table):
            opened = self.open(target_table)
            opened.create_checkpoint()
            opened.cleanup_metadata()

    def open(self, target_table: str) -> Any:
        """A ``deltalake.DeltaTable`` at its newest version, None where there is none."""
        from deltalake import DeltaTable

        path = self.locate(target_table)
        if self.place.scheme == FOLDER and not Path(path, "_delta_log").is_dir():
            return None
        options = storage_options(self.place, self.connection)
        if not DeltaTable.is_deltatable(path, options):
            return None
        return DeltaTable(path, storage_options=options)

    def fence(self, target_table: str, expected: TargetState, record: ControlRecord) -> ControlRecord:
        """Commit ``record`` without data, on condition that the table is still as ``expected``.

        The commit is one append of no rows on one table handle, never retried by the library. Where the record's token
        is already named by an attempt that died, the fence goes higher; returned is the record that was committed.
        A lost answer is read back: it counts where the nonce is ours.
        """
        record = claimed(self.log, record, expected)
        for _ in range(2):
            with self.answers(target_table):
                opened = self.open(target_table)
                if opened is None or not self._still(opened, expected, record.table):
                    raise changed_since(record.table, self.locate(target_table), expected)
                try:
                    failpoint("fence.before")
                    _append_nothing(opened, self.app_id(record.table), record)
                    failpoint("fence.after")
                except Exception:  # whatever the library raised, only the table can tell whether the commit stands
                    if is_ours(self.state(record.table, target_table), record):
                        return record
                else:
                    return record
        raise left_no_trace(self.locate(target_table))

    def _still(self, opened: Any, expected: TargetState, table: str) -> bool:
        return bool(
            opened.version() == expected.version and opened.transaction_version(self.app_id(table)) == expected.token
        )

    def _read(self, opened: Any, table: str) -> TargetState:
        version, identity = opened.version(), str(opened.metadata().id)
        token = opened.transaction_version(self.app_id(table))
        if token is None:
            return TargetState(exists=True, version=version, identity=identity)
        found = self._standing(opened, table)
        control = found.record
        if not found.restored:
            control = self.log.control(table, token) or control
        elif control is not None:
            control = self.log.control(table, control.token) or control
        return TargetState(True, control, version, identity, token, found.restored)

    def _standing(self, opened: Any, table: str) -> TableHistory:
        found = TableHistory(None, restored=False, known=False)
        for limit in HISTORY_COMMITS:
            found = read_history(self._commits(opened, table, limit))
            if found.known:
                break
        return found

    def _commits(self, opened: Any, table: str, limit: int | None = None) -> list[Commit]:
        return [read_commit(entry, self.replicator, table) for entry in opened.history(limit)]

    @contextlib.contextmanager
    def answers(self, target_table: str) -> Iterator[None]:
        """Around whatever asks the table something. Raises TargetUnavailable (TGT010)."""
        from deltalake.exceptions import DeltaError

        try:
            yield
        except (DeltaError, OSError, StagingUnavailable) as error:
            raise TargetUnavailable(
                Problem(
                    "TGT010",
                    "the Delta table cannot be read",
                    where=self.locate(target_table),
                    found=in_words(error),
                    do="look at the permissions and the state of the target; the next run tries again",
                )
            ) from error


def _append_nothing(opened: Any, app_id: str, record: ControlRecord) -> None:
    import pyarrow
    from deltalake import CommitProperties, Transaction, write_deltalake

    write_deltalake(
        opened,
        pyarrow.schema(opened.schema().to_arrow()).empty_table(),
        mode="append",
        commit_properties=CommitProperties(
            custom_metadata={"userMetadata": record_text(record)},
            app_transactions=[Transaction(app_id, record.token)],
            max_commit_retries=0,
        ),
    )
