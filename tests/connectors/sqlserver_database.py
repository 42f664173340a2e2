"""A simulated SQL Server, a connector for it, and a plain table that the changes are applied to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from airflow_cdc_provider.connectors.key_ranges import KeyRange
from airflow_cdc_provider.connectors.source import Boundary, Copy, HoleFound, SourceStatus, StreamItem
from airflow_cdc_provider.connectors.sources.polling.canonical import canonical_value
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.table.merge_plan import GONE
from airflow_cdc_provider.core.table.schema import TableSchema
from spark_jobs.folds.fold import Fold
from spark_jobs.folds.key_groups import ENTRIES
from spark_jobs.folds.lives import Rules
from tests.connectors.table_tasks import table_task
from tests.simulators.sqlserver.capture import Capture
from tests.simulators.sqlserver.client import SimulatedClient
from tests.simulators.sqlserver.engine import Engine
from tests.simulators.sqlserver.source import SimulatedSource
from tests.simulators.sqlserver.tables import Col, Row, Table

Rows = dict[str, dict[str, Any]]
IDLE_S = 400
"""After this time an idle capture job records its progress."""


class Shop:
    """One database with Change Data Capture, and a connector for it. The capture job runs on ``scan`` only."""

    def __init__(self, folder: Path, shuffle: Callable[[list[int]], None] | None = None, **options: Any) -> None:
        self.engine = Engine(folder, shuffle)
        self.capture = Capture(self.engine)
        self.capture.enable_database()
        self.source = self.open(**options)
        SimulatedSource.on_sleep[str(folder)] = self.sleep
        self.sleep(IDLE_S)
        self.position = self.source.open_stream([])

    def open(self, **options: Any) -> SimulatedSource:
        info = ConnectionInfo("db", str(self.engine.folder), extra=self.engine.properties)
        return SimulatedSource(Source("sqlserver", "db", options=options), info, "shop")

    @property
    def client(self) -> SimulatedClient:
        assert isinstance(self.source.client, SimulatedClient)
        return self.source.client

    def sleep(self, seconds: float) -> None:
        self.engine.pass_time(seconds)
        self.capture.scan()

    def table(self, name: str, *columns: Col, key: Sequence[str] = ("id",), clustered: bool = True) -> Table:
        """A captured table. The stream begins after its capture."""
        table = self.capture_new(name, *columns, key=key, clustered=clustered)
        self.sleep(IDLE_S)
        self.position = self.source.open_stream([])
        return table

    def capture_new(self, name: str, *columns: Col, key: Sequence[str] = ("id",), clustered: bool = True) -> Table:
        table = self.engine.create_table(name, columns, key, clustered)
        self.capture.enable(table)
        return table

    def insert(self, table: Table, *rows: Row) -> None:
        with self.engine.transaction() as transaction:
            transaction.insert(table, *rows)

    def update(self, table: Table, number: int, **values: Any) -> None:
        with self.engine.transaction() as transaction:
            transaction.update(table, lambda row: row["id"] == number, lambda _row: values)

    def delete(self, table: Table, number: int) -> None:
        with self.engine.transaction() as transaction:
            transaction.delete(table, lambda row: row["id"] == number)

    def task(self, name: str, held: TableSchema | None = None, **rule: Any) -> TableTask:
        """As a run sees the table now. ``held``: the schema of the target."""
        return table_task(self.source.tables(), name, held, **rule)

    def status(self, *names: str) -> SourceStatus:
        return self.source.status(self.position, names)

    def window(self, *tasks: TableTask, limit: Position | None = None, scan: bool = True) -> list[StreamItem]:
        """From the end of the last window to the last captured commit."""
        if scan:
            self.capture.scan()
        limit = limit or self.source.status(self.position, [task.table for task in tasks]).limit
        (split,) = self.source.splits(self.position, limit)
        items = list(self.source.read(split, tasks, 1))
        self.position = next((item.position for item in reversed(items) if isinstance(item, Boundary)), limit)
        return items

    def copied(
        self, task: TableTask, partitions: int = 4, between: Callable[[], None] = lambda: None
    ) -> tuple[Copy, Rows]:
        """A copy and its rows as canonical values, by key. ``between``: called before each split is read."""
        with self.source.copy(task, 1, self.position, partitions) as copy:
            tables = []
            for split in copy.read.splits:
                between()
                tables += list(self.source.read_split(split, copy.schema))
        return copy, canonical_rows(tables, copy.schema)

    def truth(self, task: TableTask) -> Rows:
        """The rows now, read like a split, whatever prevents a copy."""
        split = KeyRange(None, None, tuple(task.rule.where)).text()
        return canonical_rows(self.source.read_split(split, task.schema), task.schema)


def canonical_rows(tables: Iterable[pa.Table], schema: TableSchema) -> Rows:
    rows: Rows = {}
    for row in (row for table in tables for row in table.to_pylist()):
        values = {column.name: canonical_value(column.type, row[column.name]) for column in schema.columns}
        key = f"[{','.join(values[name] for name in schema.key)}]"
        rows[key] = {name: json.loads(text) for name, text in values.items()}
    return rows


def records(items: Sequence[StreamItem]) -> list[ChangeRecord]:
    """The row changes among the items."""
    return [item for item in items if isinstance(item, ChangeRecord) and item.op != Operation.SCHEMA]


def holes(items: Sequence[StreamItem]) -> list[tuple[str, str]]:
    return [(item.table, item.detail) for item in items if isinstance(item, HoleFound)]


def image(record: ChangeRecord) -> dict[str, Any]:
    return dict(json.loads(record.after or "{}"))


def apply(rows: Rows, changes: Sequence[ChangeRecord], schema: TableSchema, floor: str = "") -> None:
    """Folds the changes after the floor as the product does, and applies the result."""
    newer = [one for one in changes if one.order_key > floor]
    assert not [one.after for one in newer if one.op == Operation.UNREADABLE]
    if not newer:
        return
    entries = pa.Table.from_pylist(
        [{name: getattr(one, name) for name in ENTRIES.names} | {"op": str(one.op)} for one in newer], ENTRIES
    )
    fold = Fold(Rules(schema.names, schema.key, {}), doubly_held=True)
    before = dict(rows)
    for row in fold.rows(entries).to_pylist():
        if row["op"] == GONE:
            rows.pop(row["key"], None)
            continue
        values = json.loads(row["image"])
        if row["known"] is not None:
            old = before.get(row["root"] or row["key"], {})
            values = {name: values.get(name) if name in row["known"] else old.get(name) for name in schema.names}
        rows[row["key"]] = {name: values.get(name) for name in schema.names}
