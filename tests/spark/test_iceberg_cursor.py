"""Cursor and fence of an Iceberg table, read and written by pyiceberg alone: no JVM."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Fenced, TargetUnavailable
from airflow_cdc_provider.core.spec.definition import OnDelete, TableRule, Target
from airflow_cdc_provider.core.table.control_record import ControlRecord, token
from airflow_cdc_provider.core.table.identity import ColumnIdentity, TableIdentity
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.targets.iceberg.catalog import catalog_location, create_catalog
from airflow_cdc_provider.targets.iceberg.commits import CURSOR_TAG, branch_name
from airflow_cdc_provider.targets.iceberg.maintenance import expirable_before
from airflow_cdc_provider.targets.iceberg.record_properties import snapshot_properties, table_properties
from airflow_cdc_provider.targets.iceberg.target import IcebergTarget

TABLE, TARGET = "public.orders", "orders"
SCHEMA = TableSchema(TABLE, (Column("id", LogicalType(Kind.INT64), False),), ("id",))
IDENTITY = TableIdentity("16384", {"id": ColumnIdentity(1, "20", "730")}, last_number=1)
COLUMNS = pa.schema([("id", pa.int64()), ("_cdc_order", pa.string())])


def control(fence: int, window: int, state: TableState = TableState.REPLICATING, attempt: str = "a") -> ControlRecord:
    now = State(state, "2026-01-01T00:00:00Z")
    nonce = f"n{fence}-{window}"
    fields = ("shop", TABLE, "log", "owner", attempt, fence, window, "00")
    return ControlRecord(*fields, now, schema=SCHEMA, identity=IDENTITY, nonce=nonce)


class ForeignClient:
    """The catalog, as another client uses it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextlib.contextmanager
    def opened(self) -> Iterator[Any]:
        self.folder.mkdir(exist_ok=True)
        where = {"uri": f"sqlite:///{self.folder}/catalog.db", "warehouse": str(self.folder)}
        with contextlib.closing(SqlCatalog("lake", **where)) as catalog:
            catalog.create_namespace_if_not_exists("cdc")
            yield catalog.create_table_if_not_exists(f"cdc.{TARGET}", COLUMNS)

    def append(self, value: int = 9, branch: str = "main", **properties: str) -> int:
        """A commit with one row; the id of its snapshot."""
        with self.opened() as table:
            rows = pa.table({"id": pa.array([value], pa.int64())})
            table.append(rows, snapshot_properties=properties, branch=branch)
            return int(table.snapshot_by_name(branch).snapshot_id)

    def commit(self, log: ChangeLog, record: ControlRecord, named: bool = True) -> int:
        """A data commit, as a merge makes it."""
        assert not named or log.write_control(record)
        head = self.append(record.window, **snapshot_properties(record))
        with self.opened() as table, table.transaction() as transaction:
            transaction.set_properties(table_properties(record))
        return head

    def roll_back(self, snapshot: int) -> None:
        with self.opened() as table:
            table.manage_snapshots().set_current_snapshot(snapshot).commit()

    def expire(self, by_upkeep: bool = False) -> None:
        with self.opened() as table:
            before = datetime.now(UTC)
            before = expirable_before(table.metadata, before) if by_upkeep else before
            table.maintenance.expire_snapshots().older_than(before).commit()

    def rows(self) -> list[int]:
        with self.opened() as table:
            return sorted(table.scan().to_arrow()["id"].to_pylist())

    def drop(self) -> None:
        with contextlib.closing(SqlCatalog("lake", uri=f"sqlite:///{self.folder}/catalog.db")) as catalog:
            catalog.drop_table(f"cdc.{TARGET}")


@pytest.fixture
def tables(tmp_path: Path) -> IcebergTarget:
    log = ChangeLog(LocalStore(str(tmp_path / "staging")))
    return IcebergTarget(Target("iceberg", str(tmp_path / "lake")), ConnectionInfo(), "shop", log)


@pytest.fixture
def client(tmp_path: Path) -> ForeignClient:
    return ForeignClient(tmp_path / "lake")


def task(rule: TableRule | None = None, schema: TableSchema = SCHEMA) -> TableTask:
    return TableTask(TABLE, TARGET, schema, rule or TableRule(TABLE), "", TableState.PENDING)


def test_a_missing_table_has_no_state_and_a_read_creates_no_catalog(tables: IcebergTarget, tmp_path: Path) -> None:
    assert not tables.state(TABLE, TARGET).exists
    assert not (tmp_path / "lake").exists()


def test_a_foreign_table_has_no_control_record(tables: IcebergTarget, client: ForeignClient) -> None:
    client.append()
    current = tables.state(TABLE, TARGET)
    assert (current.exists, current.control, current.token) == (True, None, None)
    assert [problem.code for problem in tables.check([task()])] == ["TGT012"]


def test_the_newest_commit_of_ours_counts_below_a_foreign_append(tables: IcebergTarget, client: ForeignClient) -> None:
    client.commit(tables.log, control(1, 1))
    client.commit(tables.log, control(1, 2))
    newest = client.append()
    current = tables.state(TABLE, TARGET)
    assert current.control == control(1, 2)
    assert (current.version, current.token, current.restored) == (newest, token(1, 2), False)


def test_a_control_file_that_is_gone_is_replaced_by_the_commit_itself(
    tables: IcebergTarget, client: ForeignClient
) -> None:
    client.commit(tables.log, control(1, 7), named=False)
    assert tables.state(TABLE, TARGET).control == control(1, 7)


def test_a_foreign_rollback_takes_the_cursor_back_and_the_next_fence_passes_the_old_token(
    tables: IcebergTarget, client: ForeignClient
) -> None:
    first, *_ = [client.commit(tables.log, control(4, window)) for window in (1, 2, 3)]
    client.roll_back(first)
    current = tables.state(TABLE, TARGET)
    assert (current.control, current.restored, current.token) == (control(4, 1), True, token(4, 3))
    assert current.control is not None
    fenced = tables.fence(TARGET, current, replace(current.control.fenced(), fence=2))
    after = tables.state(TABLE, TARGET)
    assert fenced.fence == 5 and after.control == fenced and fenced.window == 1
    assert not after.restored and after.token == token(5, 1)


def test_a_rollback_to_before_our_first_commit_leaves_no_record(tables: IcebergTarget, client: ForeignClient) -> None:
    foreign = client.append()
    client.commit(tables.log, control(1, 1))
    client.roll_back(foreign)
    current = tables.state(TABLE, TARGET)
    assert (current.control, current.restored, current.token) == (None, True, token(1, 1))


def test_the_rollback_announced_by_our_own_rewind_is_not_foreign(tables: IcebergTarget, client: ForeignClient) -> None:
    first = client.commit(tables.log, control(1, 1))
    client.commit(tables.log, control(1, 2))
    rewinding = tables.fence(TARGET, tables.state(TABLE, TARGET), control(2, 2, TableState.REWINDING))
    client.roll_back(first)
    current = tables.state(TABLE, TARGET)
    assert (current.control, current.restored) == (rewinding, False)


def test_a_snapshot_that_never_was_current_is_ignored(tables: IcebergTarget, client: ForeignClient) -> None:
    client.commit(tables.log, control(1, 1))
    client.append(2, "cdc_attempt_lost", **snapshot_properties(control(1, 2)))
    current = tables.state(TABLE, TARGET)
    assert (current.control, current.token, current.restored) == (control(1, 1), token(1, 1), False)


def test_a_fence_changes_no_row_and_is_what_counts_next(tables: IcebergTarget, client: ForeignClient) -> None:
    client.commit(tables.log, control(1, 1))
    record = tables.fence(TARGET, tables.state(TABLE, TARGET), control(1, 1).fenced())
    assert (record.fence, record.window) == (2, 1)
    assert tables.state(TABLE, TARGET).control == record
    assert client.rows() == [1]


def test_the_cursor_is_found_after_any_expiration(tables: IcebergTarget, client: ForeignClient) -> None:
    client.commit(tables.log, control(1, 1))
    record = tables.fence(TARGET, tables.state(TABLE, TARGET), control(1, 1).fenced())
    client.append()
    client.expire()
    current = tables.state(TABLE, TARGET)
    assert (current.control, current.restored) == (record, False)
    assert tables.oldest_token(TABLE, TARGET) == record.token


def test_a_history_with_a_gap_above_the_cursor_counts_as_a_rollback(
    tables: IcebergTarget, client: ForeignClient
) -> None:
    """Two foreign commits, the lower one expired: there is no proof that the cursor is below them."""
    client.commit(tables.log, control(1, 1))
    record = tables.fence(TARGET, tables.state(TABLE, TARGET), control(1, 1).fenced())
    client.append()
    client.append()
    client.expire()
    current = tables.state(TABLE, TARGET)
    assert (current.control, current.restored, current.token) == (None, True, record.token)


def test_upkeep_leaves_what_is_above_the_commit_of_an_idle_copy(
    tables: IcebergTarget, client: ForeignClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_cdc_provider.targets.iceberg.maintenance.CLOCK_DIFFERENCE", timedelta(0))
    first = client.commit(tables.log, control(1, 1))
    record = tables.fence(TARGET, tables.state(TABLE, TARGET), control(1, 1).fenced())
    for value in range(3):
        client.append(value)
    client.expire(by_upkeep=True)
    current = tables.state(TABLE, TARGET)
    assert (current.control, current.restored) == (record, False)
    with client.opened() as table:
        assert first not in {snapshot.snapshot_id for snapshot in table.metadata.snapshots}, "it is below the commit"


def test_a_fence_from_an_older_state_is_refused(tables: IcebergTarget, client: ForeignClient) -> None:
    client.commit(tables.log, control(1, 1))
    current = tables.state(TABLE, TARGET)
    client.commit(tables.log, control(1, 2))
    with pytest.raises(Fenced, match="TGT020"):
        tables.fence(TARGET, current, control(1, 1).fenced())
    assert tables.state(TABLE, TARGET).control == control(1, 2)


def test_one_of_two_fences_from_the_same_state_wins(tables: IcebergTarget, client: ForeignClient) -> None:
    client.commit(tables.log, control(1, 1))
    current = tables.state(TABLE, TARGET)
    first = tables.fence(TARGET, current, control(1, 1).fenced())
    with pytest.raises(Fenced):
        tables.fence(TARGET, current, control(1, 1).fenced())
    assert tables.state(TABLE, TARGET).control == first


def test_a_commit_at_the_moment_of_a_fence_rejects_the_fence(
    tables: IcebergTarget, client: ForeignClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog compares: the other commit happens after the last read of the fence."""
    client.commit(tables.log, control(1, 1))
    current = tables.state(TABLE, TARGET)
    commit = SqlCatalog.commit_table

    def late(catalog: SqlCatalog, *arguments: Any) -> Any:
        monkeypatch.setattr(SqlCatalog, "commit_table", commit)
        client.commit(tables.log, control(1, 2))
        return commit(catalog, *arguments)

    monkeypatch.setattr(SqlCatalog, "commit_table", late)
    with pytest.raises(Fenced, match="TGT020"):
        tables.fence(TARGET, current, control(1, 1).fenced())
    assert tables.state(TABLE, TARGET).control == control(1, 2)


def test_a_lost_answer_counts_where_the_commit_stands(
    tables: IcebergTarget, client: ForeignClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.commit(tables.log, control(1, 1))
    current = tables.state(TABLE, TARGET)
    commit = SqlCatalog.commit_table

    def lose_the_answer(*arguments: Any) -> None:
        commit(*arguments)
        raise OSError("connection reset")

    monkeypatch.setattr(SqlCatalog, "commit_table", lose_the_answer)
    record = tables.fence(TARGET, current, control(1, 1).fenced())
    assert tables.state(TABLE, TARGET).control == record


def test_a_fence_that_fails_twice_can_be_retried(
    tables: IcebergTarget, client: ForeignClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.commit(tables.log, control(1, 1))
    current = tables.state(TABLE, TARGET)

    def lose(*arguments: Any) -> None:
        raise OSError("no space")

    monkeypatch.setattr(SqlCatalog, "commit_table", lose)
    with pytest.raises(TargetUnavailable, match="TGT021"):
        tables.fence(TARGET, current, control(1, 1).fenced())
    assert tables.state(TABLE, TARGET) == current


def branched(tables: IcebergTarget, client: ForeignClient) -> ControlRecord:
    """A merge that has written its branch and not yet published it."""
    record = control(1, 2)
    with client.opened() as table:
        head = table.current_snapshot().snapshot_id
        table.manage_snapshots().create_branch(head, branch_name(record)).commit()
    client.append(2, branch_name(record), **snapshot_properties(record))
    return record


def test_a_branch_becomes_the_table_in_one_commit_and_is_removed(tables: IcebergTarget, client: ForeignClient) -> None:
    client.commit(tables.log, control(1, 1))
    current = tables.state(TABLE, TARGET)
    record = branched(tables, client)
    assert client.rows() == [1] and tables.state(TABLE, TARGET) == current
    assert tables.publish(TARGET, current, record)
    assert client.rows() == [1, 2] and tables.state(TABLE, TARGET).control == record
    with client.opened() as table:
        assert set(table.refs()) == {"main", CURSOR_TAG}


def test_a_branch_does_not_become_the_table_over_a_later_commit(tables: IcebergTarget, client: ForeignClient) -> None:
    client.commit(tables.log, control(1, 1))
    current = tables.state(TABLE, TARGET)
    record = branched(tables, client)
    client.append()
    assert not tables.publish(TARGET, current, record)
    assert tables.state(TABLE, TARGET).control == control(1, 1)


def test_a_fence_drops_the_branches_of_the_attempts_it_rejects(tables: IcebergTarget, client: ForeignClient) -> None:
    client.commit(tables.log, control(1, 1))
    current = tables.state(TABLE, TARGET)
    record = branched(tables, client)
    fence = tables.fence(TARGET, current, control(1, 1).fenced())
    assert not tables.publish(TARGET, current, record)
    assert tables.state(TABLE, TARGET).control == fence and client.rows() == [1]


def test_a_branch_cut_before_a_rollback_does_not_undo_it(tables: IcebergTarget, client: ForeignClient) -> None:
    """Iceberg's own fast-forward would: the older snapshot is an ancestor of the branch."""
    first = client.append()
    client.commit(tables.log, control(1, 1))
    current = tables.state(TABLE, TARGET)
    record = branched(tables, client)
    client.roll_back(first)
    assert not tables.publish(TARGET, current, record)
    assert client.rows() == [9]


def test_a_dropped_and_recreated_table_is_foreign(tables: IcebergTarget, client: ForeignClient) -> None:
    client.commit(tables.log, control(1, 1))
    before = tables.state(TABLE, TARGET)
    client.drop()
    assert not tables.state(TABLE, TARGET).exists
    client.append()
    current = tables.state(TABLE, TARGET)
    assert current.control is None and current.identity != before.identity
    with pytest.raises(Fenced, match="TGT020"):
        tables.fence(TARGET, before, control(1, 1).fenced())


def test_all_problems_of_a_table_are_reported_at_once(tables: IcebergTarget) -> None:
    text = LogicalType(Kind.TEXT)
    columns = tuple(Column(name, text) for name in ("Id", "id", "_cdc_x", "_pos"))
    rule = TableRule(TABLE, on_delete=OnDelete.SOFT, cluster_by=("nope",))
    codes = [problem.code for problem in tables.check([task(rule, TableSchema(TABLE, columns))])]
    assert codes == ["TGT014", "TGT015", "TGT016", "TGT017", "TGT019"]


@pytest.mark.parametrize(
    ("target", "codes"),
    [
        (Target("iceberg", catalog="lake.shop"), ["TGT001"]),
        (Target("iceberg", "s3://bucket/lake"), ["TGT001"]),
        (Target("iceberg", "/tmp", connection="rest"), ["TGT005"]),
        (Target("iceberg", "/tmp", catalog="a.b.c"), ["TGT002"]),
    ],
)
def test_an_invalid_location_is_refused(target: Target, codes: list[str]) -> None:
    tables = IcebergTarget(target, ConnectionInfo(), "shop", ChangeLog(LocalStore("/nowhere")))
    assert [problem.code for problem in tables.check([])] == codes


def test_a_catalog_is_created_completely_or_not_at_all(tmp_path: Path) -> None:
    for number in range(10):
        location = catalog_location(Target("iceberg", str(tmp_path / f"lake{number}")), ConnectionInfo())
        reader = IcebergTarget(
            Target("iceberg", location.warehouse), ConnectionInfo(), "shop", ChangeLog(LocalStore(str(tmp_path)))
        )
        done = threading.Event()

        def read(reader: IcebergTarget = reader, done: threading.Event = done) -> int:
            found = 0
            while not done.is_set():
                assert not reader.state(TABLE, TARGET).exists
                found += 1
            return found

        with ThreadPoolExecutor(3) as pool:
            reading = pool.submit(read)
            made = [pool.submit(create_catalog, location) for _ in range(2)]
            assert [one.result() for one in made] == [None, None]
            done.set()
            assert reading.result() > 0
        assert [path.name for path in Path(location.warehouse).iterdir()] == ["catalog.db"]
