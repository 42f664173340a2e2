"""The simulated database: statements, transactions, a log, and a clock. Queries run on files that it writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from airflow_cdc_provider.core.table.source_names import parts_of
from tests.simulators.sqlserver import views
from tests.simulators.sqlserver.dialect import quoted, stored
from tests.simulators.sqlserver.tables import DELETE, INSERT, Col, Logged, Row, Table, changes_of_update

DATABASE_COLLATION = "SQL_Latin1_General_CP1_CI_AS"
BLOCK = 1 << 16
"""LSNs of consecutive records differ by more than one."""


@dataclass(frozen=True)
class Committed:
    """A transaction in the log. ``ddl``: (object id, statement, the columns after it) of an ALTER TABLE."""

    lsn: int
    began: str
    at: str
    changes: tuple[tuple[int, Logged], ...] = ()
    ddl: tuple[tuple[int, str, tuple[Col, ...]], ...] = ()


@dataclass
class Transaction:
    engine: Engine
    began: str
    command: int = 0
    changes: list[tuple[Table, Logged]] = field(default_factory=list)
    undo: list[Callable[[], None]] = field(default_factory=list)

    def insert(self, table: Table, *rows: Row) -> None:
        for row in rows:
            full = table.complete(row)
            assert table.key_of(full) not in {table.key_of(other) for other in table.rows.values()}, "equal keys"
            self._change(table, [(None, full)], [(INSERT, None, full, False)])

    def delete(self, table: Table, where: Callable[[Row], bool]) -> None:
        gone = [row for row in table.rows.values() if where(row)]
        self._change(table, [(row, None) for row in gone], [(DELETE, row, None, False) for row in gone])

    def update(
        self, table: Table, where: Callable[[Row], bool], change: Callable[[Row], Row], as_pairs: bool = False
    ) -> None:
        pairs = [(row, table.complete({**row, **change(row)})) for row in table.rows.values() if where(row)]
        kept = [table.key_of(row) for row in table.rows.values() if not where(row)]
        keys = kept + [table.key_of(after) for _, after in pairs]
        assert len(set(keys)) == len(keys), "equal keys"
        self._change(table, pairs, list(changes_of_update(table, pairs, as_pairs)))

    def _change(self, table: Table, pairs: Sequence[tuple[Row | None, Row | None]], logged: Sequence[Any]) -> None:
        self.undo.append(partial(setattr, table, "rows", dict(table.rows)))
        for old, new in pairs:
            number = next((n for n, row in table.rows.items() if row is old), None)
            if number is not None and new is None:
                del table.rows[number]
            else:
                table.rows[self.engine.number() if number is None else number] = new or {}
        self.command += 1
        lsn = 0
        for kind, old, new, same_row in logged:
            lsn = lsn if same_row else self.engine.next_lsn()
            self.command += same_row
            self.changes.append((table, Logged(lsn, self.command, kind, old, new)))

    def commit(self) -> Committed:
        return self.engine.commit(self)

    def rollback(self) -> None:
        for undo in reversed(self.undo):
            undo()


SCHEMA_IDS = {"dbo": 1, "stock": 7, "cdc": 9, "dbo.b": 11}


class Engine:
    """``shuffled``: row LSNs do not follow the order of the changes in their transaction."""

    def __init__(self, folder: Path, shuffle: Callable[[list[int]], None] | None = None) -> None:
        self.folder = folder
        self.tables: dict[str, Table] = {}
        self.log: list[Committed] = []
        self.properties: dict[str, Any] = {
            "ProductMajorVersion": 16, "EngineEdition": 3, "offset": 120, "user": "cdc", "database": "shop",
        }  # fmt: skip
        self.files = views.connect_writer(folder)
        self._shuffle, self._lsn, self._numbers = shuffle, 0x25 << 48, 100
        self.time = datetime(2026, 1, 2, 3, 4, 5)
        views.create(self.files, views.VIEWS)
        views.create(self.files, {"sys.clock_": "now"})
        views.add_types(self.files)
        self.files.execute(
            "INSERT INTO sys.databases VALUES (5, ?, ?, 0, 1)", (self.properties["database"], DATABASE_COLLATION)
        )
        self.files.execute(
            "INSERT INTO sys.database_recovery_status VALUES (5, ?, ?)", (str(UUID(int=1)), str(UUID(int=2)))
        )
        self.files.executemany("INSERT INTO sys.schemas (name, schema_id) VALUES (?, ?)", SCHEMA_IDS.items())
        self.files.execute("INSERT INTO msdb.cdc_jobs VALUES (5, 'cleanup', 10080)")
        self.files.execute("INSERT INTO sys.clock_ VALUES (?)", (self.now,))

    @property
    def now(self) -> str:
        """Local time of the server, in steps of a millisecond."""
        return self.time.isoformat(sep=" ", timespec="milliseconds")

    def pass_time(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)
        self.files.execute("UPDATE sys.clock_ SET now = ?", (self.now,))

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    def move_log_to(self, lsn: int) -> None:
        self._lsn = max(self._lsn, lsn)

    def next_lsn(self) -> int:
        self._lsn += BLOCK
        return self._lsn

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Statements that a reader sees together."""
        self.files.execute("BEGIN")
        yield self.files
        self.files.execute("COMMIT")

    # Definitions

    def create_table(self, name: str, columns: Sequence[Col], key: Sequence[str], clustered: bool = True) -> Table:
        namespace, plain = parts_of(name)
        numbered = [replace(column, number=number) for number, column in enumerate(columns, 1)]
        table = Table(namespace, plain, numbered, tuple(key), clustered, self.number(), self.now, len(columns))
        self.pass_time(0.01)
        self.tables[name] = table
        with self.writing():
            self.describe(table)
            self.show(table)
        return table

    def describe(self, table: Table, shipped: bool = False) -> None:
        """Writes the table to the catalog."""
        self.forget(table)
        files, number = self.files, SCHEMA_IDS[table.namespace]
        files.execute(
            "INSERT INTO sys.tables VALUES (?, ?, ?, ?, ?, ?, 0)",
            (table.object_id, table.name, number, table.created, table.last_number, int(shipped)),
        )
        for column in table.columns:
            clr = column.system_type in views.CLR_TYPES
            user = views.CLR_TYPES[column.system_type] if clr else views.TYPES[column.system_type]
            collation = column.collation if column.system_type in ("char", "varchar", "text", "nchar", "nvarchar",
                                                                   "ntext") else None  # fmt: skip
            files.execute(
                f"INSERT INTO sys.columns VALUES ({', '.join('?' * 15)})",
                (table.object_id, column.name, column.number, views.CLR if clr else user, user, *column.size,
                 collation, int(column.nullable), 0, int(column.computed is not None), int(column.default), 0,
                 None),
            )  # fmt: skip
        if table.key:
            kind = 1 if table.clustered else 2
            files.execute(
                "INSERT INTO sys.indexes VALUES (?, ?, ?, ?, 1, 1, 0, 0, 0)",
                (table.object_id, f"pk_{table.name}", kind, kind),
            )
            numbers = {column.name: column.number for column in table.columns}
            files.executemany(
                "INSERT INTO sys.index_columns VALUES (?, ?, ?, ?, ?)",
                [(table.object_id, kind, at, numbers[name], at) for at, name in enumerate(table.key, 1)],
            )
        files.executemany(
            "INSERT INTO sys.partitions VALUES (?, ?, ?, ?, 0)",
            [(self.number(), table.object_id, int(table.clustered), part + 1) for part in range(table.partitions)],
        )
        files.execute(
            "INSERT INTO sys.dm_db_partition_stats SELECT partition_id, object_id, index_id, partition_number, 2, 0 "
            "FROM sys.partitions WHERE object_id = ?",
            (table.object_id,),
        )

    def forget(self, table: Table) -> None:
        for view in ("tables", "columns", "indexes", "index_columns", "partitions", "dm_db_partition_stats"):
            self.files.execute(f"DELETE FROM sys.{view} WHERE object_id = ?", (table.object_id,))

    def show(self, table: Table) -> None:
        """Writes the rows of the table, as queries see them now."""
        names = ", ".join(quoted(column.name) for column in table.columns)
        self.files.execute(f"DROP TABLE IF EXISTS {table.sql}")
        self.files.execute(f"CREATE TABLE {table.sql} ({names})")
        marks = ", ".join("?" * len(table.columns))
        rows = [[stored(one.type, row[one.name]) for one in table.columns] for row in table.rows.values()]
        self.files.executemany(f"INSERT INTO {table.sql} VALUES ({marks})", rows)
        self.files.execute("UPDATE sys.partitions SET rows = ? WHERE object_id = ?", (len(rows), table.object_id))
        self.files.execute(
            "UPDATE sys.dm_db_partition_stats SET row_count = ? WHERE object_id = ?", (len(rows), table.object_id)
        )

    # Transactions

    def begin(self) -> Transaction:
        return Transaction(self, self.now)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        transaction = self.begin()
        yield transaction
        transaction.commit()

    def commit(self, transaction: Transaction, visible: bool = True) -> Committed:
        """``visible``: False writes it to the log only; call ``show`` for its tables later."""
        changes = transaction.changes
        if self._shuffle and changes:
            lsns = sorted({logged.lsn for _, logged in changes})
            shuffled = list(lsns)
            self._shuffle(shuffled)
            new = dict(zip(lsns, shuffled, strict=True))
            changes = [(table, replace(logged, lsn=new[logged.lsn])) for table, logged in changes]
        self.pass_time(0.007)
        found = tuple((table.object_id, logged) for table, logged in changes)
        committed = Committed(self.next_lsn(), transaction.began, self.now, found)
        self.log.append(committed)
        if visible:
            with self.writing():
                for table in {id(table): table for table, _ in changes}.values():
                    self.show(table)
        return committed

    def alter(self, table: Table, statement: str, columns: Sequence[Col]) -> None:
        """``columns``: those after the statement. A new one has the number 0."""
        last = table.last_number
        numbered = []
        for column in columns:
            last += column.number == 0
            numbered.append(column if column.number else replace(column, number=last))
        table.columns, table.last_number = numbered, last
        table.rows = {number: table.complete(row) for number, row in table.rows.items()}
        self.pass_time(0.007)
        self.log.append(
            Committed(self.next_lsn(), self.now, self.now, ddl=((table.object_id, statement, tuple(numbered)),))
        )
        with self.writing():
            self.describe(table)
            self.show(table)
