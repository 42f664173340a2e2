"""The simulated SQL Server, whose capture job runs while the connector sleeps."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.table.reported_changes import TableChange
from tests.simulators.sqlserver.capture import Capture
from tests.simulators.sqlserver.engine import Engine
from tests.simulators.sqlserver.source import SimulatedSource
from tests.simulators.sqlserver.tables import Col, Table
from tests.spark.pipelines.change_tables.simulator import KIND, installed_simulator
from tests.spark.pipelines.schema_changes.reported.changing_source import Case, ChangingSource, Rows, texts

COLUMNS = (Col("id", "int", False), Col("a", "int"), Col("k", "int", False), Col("v", "nvarchar(20)"))

NEW_NAMES = frozenset(
    {TableChange.ADD_COLUMN, TableChange.FILLED_COLUMN, TableChange.REPLACE_COLUMN, TableChange.RENAME_COLUMN}
)


class ChangingSqlServer(ChangingSource):
    """After a new column, a second capture instance is created before the next row."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.lock = threading.Lock()
        self.engine = Engine(folder)
        self.capture = Capture(self.engine)
        self.capture.enable_database()
        SimulatedSource.on_sleep[str(folder)] = self.sleep

    @property
    def source(self) -> Source:
        return Source(KIND, "source")

    @property
    def secrets(self) -> Secrets:
        return Secrets(ConnectionInfo("db", str(self.engine.folder), extra=self.engine.properties))

    def name(self, case: Case) -> str:
        return f"dbo.{case}"

    def sleep(self, seconds: float) -> None:
        """Copies of several tables may wait at once."""
        with self.lock:
            self.engine.pass_time(seconds)
            self.capture.scan()

    def create(self, case: Case) -> None:
        table = self.engine.create_table(self.name(case), COLUMNS, ("id",))
        self.capture.enable(table)
        with self.engine.transaction() as transaction:
            transaction.insert(table, *({"id": n, "a": n * 10, "k": n, "v": f"v{n}"} for n in (1, 2, 3)))

    def change(self, case: Case) -> None:
        table = self.engine.tables[self.name(case)]
        with self.engine.transaction() as transaction:
            transaction.update(table, lambda row: row["id"] == 1, lambda _: {"a": 11})
        self._alter(table, case.change)
        with self.engine.transaction() as transaction:
            transaction.insert(table, {"id": 4, "a": 40, "k": 4})

    def truth(self, case: Case) -> Rows:
        table = self.engine.tables[self.name(case)]
        names = [column.name for column in table.columns]
        return texts({row["id"]: {name: row[name] for name in names} for row in table.rows.values()})

    def before_run(self) -> None:
        self.sleep(400)

    def _alter(self, table: Table, change: TableChange) -> None:
        first, a, k, v = table.columns
        statement = f"ALTER TABLE {table.full_name} "
        alter = self.engine.alter
        match change:
            case TableChange.ADD_COLUMN:
                alter(table, statement + "ADD z int NULL", [first, a, k, v, Col("z", "int")])
            case TableChange.FILLED_COLUMN:
                column = Col("z", "int", False, default=True)
                table.rows = {number: {**row, "z": 5} for number, row in table.rows.items()}
                alter(table, statement + "ADD z int NOT NULL DEFAULT 5", [first, a, k, v, column])
            case TableChange.DROP_COLUMN:
                alter(table, statement + "DROP COLUMN v", [first, a, k])
            case TableChange.REPLACE_COLUMN:
                alter(table, statement + "DROP COLUMN v", [first, a, k])
                alter(table, statement + "ADD v nvarchar(20)", [first, a, k, COLUMNS[3]])
            case TableChange.RENAME_COLUMN:
                table.rows = {number: {**row, "v2": row["v"]} for number, row in table.rows.items()}
                renamed = f"EXEC sp_rename '{table.full_name}.v', 'v2', 'COLUMN'"
                alter(table, renamed, [first, a, k, replace(v, name="v2")])
            case TableChange.WIDEN:
                alter(table, statement + "ALTER COLUMN a bigint", [first, replace(a, type="bigint"), k, v])
            case _:
                alter(table, statement + "ALTER COLUMN a smallint", [first, replace(a, type="smallint"), k, v])
        if change in NEW_NAMES:
            self.capture.scan()
            self.capture.enable(table, f"{table.name}_2")


@contextmanager
def changing_sqlserver(folder: Path, spark: SparkSession) -> Iterator[ChangingSqlServer]:
    with installed_simulator(folder, spark):
        yield ChangingSqlServer(folder / "server")
