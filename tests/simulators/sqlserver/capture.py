"""Change Data Capture of the simulated database: capture instances, the capture job, and cleanup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from tests.simulators.sqlserver import views
from tests.simulators.sqlserver.dialect import parted, quoted, stored
from tests.simulators.sqlserver.engine import Committed, Engine
from tests.simulators.sqlserver.tables import DELETE, INSERT, Col, Logged, Row, Table

NEVER_BEFORE = ("text", "ntext", "image")
EMPTY_EVERY = timedelta(minutes=5)


@dataclass
class Instance:
    """A capture instance. ``columns``: those captured, with the numbers of the source; ``table``: its change table."""

    name: str
    source: Table
    start: int
    columns: list[Col]
    table: Table


class Capture:
    """The capture job reads the log when ``scan`` is called, and never else."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.instances: list[Instance] = []
        self.read_to = 0
        self.last_recorded = engine.time

    def enable_database(self) -> None:
        with self.engine.writing() as files:
            for name in views.CDC_TABLES:
                files.execute(f"DROP TABLE IF EXISTS {name}")
            views.create(files, views.CDC_TABLES)
            files.execute("UPDATE sys.databases SET is_cdc_enabled = 1")
        self.read_to = self.engine.next_lsn()

    def disable_database(self) -> None:
        for instance in list(self.instances):
            self.disable(instance)
        with self.engine.writing() as files:
            for name in views.CDC_TABLES:
                files.execute(f"DROP TABLE IF EXISTS {name}")
            files.execute("UPDATE sys.databases SET is_cdc_enabled = 0")

    def enable(self, table: Table, name: str = "", columns: Sequence[str] = (), switches: bool = True) -> Instance:
        """No transaction of the table is open: the server locks it."""
        name = name or f"{table.namespace}_{table.name}"
        captured = [column for column in table.columns if not columns or column.name in columns]
        engine, start = self.engine, self.engine.next_lsn()
        shape = [replace(_in_change_table(column), number=number) for number, column in enumerate(captured, 1)]
        change_table = Table("cdc", f"{name}_CT", shape, (), True, engine.number(), engine.now, len(shape))
        instance = Instance(name, table, start, captured, change_table)
        engine.pass_time(0.01)
        with engine.writing() as files:
            self._create(instance)
            files.execute(
                f"INSERT INTO cdc.change_tables VALUES ({', '.join('?' * 13)})",
                (change_table.object_id, 0, table.object_id, name, _binary(start), None, 0, 0, None, "pk", None,
                 engine.now, int(switches)),
            )  # fmt: skip
            files.executemany(
                "INSERT INTO cdc.captured_columns VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (change_table.object_id, one.name, one.number, one.system_type, at, int(one.computed is not None))
                    for at, one in enumerate(captured, 1)
                ],
            )
        self.instances.append(instance)
        return instance

    def disable(self, instance: Instance) -> None:
        self.instances.remove(instance)
        object_id = instance.table.object_id
        with self.engine.writing() as files:
            self.engine.forget(instance.table)
            files.execute(f"DROP TABLE {instance.table.sql}")
            for view in ("change_tables", "captured_columns", "ddl_history"):
                files.execute(f"DELETE FROM cdc.{view} WHERE object_id = ?", (object_id,))

    def drop_table(self, table: Table) -> None:
        for instance in [one for one in self.instances if one.source is table]:
            self.disable(instance)
        with self.engine.writing() as files:
            self.engine.forget(table)
            files.execute(f"DROP TABLE {table.sql}")
        self.engine.tables.pop(table.full_name, None)

    def scan(self, transactions: int = 1 << 30) -> None:
        """Captures the next transactions of the log, in one transaction of its own. An idle job records its progress
        after some minutes."""
        new = [one for one in self.engine.log if one.lsn > self.read_to][:transactions]
        with self.engine.writing():
            recorded = [self._capture(one) for one in new]
            if new:
                self.read_to = new[-1].lsn
            if any(recorded):
                self.last_recorded = self.engine.time
            elif self.engine.time - self.last_recorded >= EMPTY_EVERY:
                self.read_to, self.last_recorded = self.engine.next_lsn(), self.engine.time
                self._record(Committed(self.read_to, self.engine.now, self.engine.now))

    def write_recorded(self, instance: Instance, rows: Sequence[tuple[object, ...]]) -> None:
        """Rows of a change table of a real server, in the order of its columns, in place of captured ones."""
        lsns = sorted({int.from_bytes(row[0]) for row in rows if isinstance(row[0], bytes)})
        self.engine.move_log_to(lsns[-1])
        self.read_to = lsns[-1]
        with self.engine.writing() as files:
            for lsn in lsns:
                self._record(Committed(lsn, self.engine.now, self.engine.now))
            files.executemany(f"INSERT INTO {instance.table.sql} VALUES ({', '.join('?' * len(rows[0]))})", rows)

    def cleanup(self, before: int, delete: bool = True) -> None:
        """``before``: a commit LSN. First the low endpoints are raised, then rows are deleted."""
        low = _binary(before)
        with self.engine.writing() as files:
            files.execute("UPDATE cdc.change_tables SET start_lsn = ? WHERE start_lsn < ?", (low, low))
            files.execute("DELETE FROM cdc.lsn_time_mapping WHERE start_lsn < ?", (low,))
        for instance in self.instances:
            instance.start = max(instance.start, before)
        if delete:
            with self.engine.writing() as files:
                for instance in self.instances:
                    files.execute(f"DELETE FROM {instance.table.sql} WHERE [__$start_lsn] < ?", (low,))

    def _create(self, instance: Instance) -> None:
        names = ["__$start_lsn", "__$end_lsn", "__$seqval", "__$operation", "__$update_mask"]
        names += [*(column.name for column in instance.columns), "__$command_id"]
        self.engine.files.execute(f"CREATE TABLE {instance.table.sql} ({', '.join(map(quoted, names))})")
        self.engine.describe(instance.table, shipped=True)

    def _capture(self, committed: Committed) -> bool:
        captured = False
        for object_id, statement, columns in committed.ddl:
            for instance in [one for one in self.instances if one.source.object_id == object_id]:
                if committed.lsn >= instance.start:
                    self._alter(instance, statement, columns, committed)
        for object_id, logged in committed.changes:
            for instance in [one for one in self.instances if one.source.object_id == object_id]:
                if committed.lsn >= instance.start:
                    self._write(instance, committed, logged)
                    captured = True
        if captured:
            self._record(committed)
        return captured

    def _record(self, committed: Committed) -> None:
        self.engine.files.execute(
            "INSERT INTO cdc.lsn_time_mapping VALUES (?, ?, ?, ?)",
            (_binary(committed.lsn), committed.began, committed.at, _binary(committed.lsn)),
        )

    def _alter(self, instance: Instance, statement: str, columns: Sequence[Col], committed: Committed) -> None:
        """The type of a captured column follows that of its source, and so do the stored rows."""
        new = {column.number: column for column in columns}
        changed = False
        for at, column in enumerate(instance.columns):
            now = new.get(column.number)
            if now is not None and now.type != column.type:
                changed = True
                instance.columns[at] = now
                instance.table.columns[at] = replace(_in_change_table(now), number=at + 1)
                rows = self.engine.files.execute(
                    f"SELECT rowid, {quoted(column.name)} FROM {instance.table.sql}"
                ).fetchall()
                self.engine.files.executemany(
                    f"UPDATE {instance.table.sql} SET {quoted(column.name)} = ? WHERE rowid = ?",
                    [(_retagged(value, now.type), rowid) for rowid, value in rows],
                )
        self.engine.describe(instance.table, shipped=True)
        self.engine.files.execute(
            "INSERT INTO cdc.ddl_history VALUES (?, ?, ?, ?, ?, ?)",
            (instance.source.object_id, instance.table.object_id, int(changed), statement, _binary(committed.lsn),
             committed.at),
        )  # fmt: skip

    def _write(self, instance: Instance, committed: Committed, logged: Logged) -> None:
        rows = [(1, logged.before)] if logged.kind == DELETE else [(2, logged.after)] if logged.kind == INSERT else []
        rows = rows or [(3, logged.before), (4, logged.after)]
        changed = [_is_changed(column, logged) for column in instance.columns]
        mask = sum(1 << at for at, one in enumerate(changed) if one).to_bytes((len(changed) + 7) // 8)
        for operation, row in rows:
            assert row is not None
            cells = [_cell(column, row, operation, one) for column, one in zip(instance.columns, changed, strict=True)]
            self.engine.files.execute(
                f"INSERT INTO {instance.table.sql} VALUES ({', '.join('?' * (len(cells) + 6))})",
                (_binary(committed.lsn), None, _binary(logged.lsn), operation, mask, *cells, logged.command),
            )


def _is_changed(column: Col, logged: Logged) -> bool:
    if logged.before is None or logged.after is None:
        return True
    return logged.before.get(column.name) != logged.after.get(column.name)


def _cell(column: Col, row: Row, operation: int, changed: bool) -> object:
    if column.computed or (column.system_type in NEVER_BEFORE and operation in (1, 3)):
        return None
    if column.large and operation in (3, 4) and not changed:
        return None
    return stored(_in_change_table(column).type, row.get(column.name))


def _in_change_table(column: Col) -> Col:
    kind = "binary(8)" if column.system_type == "timestamp" else column.type
    return replace(column, type=kind, nullable=True, default=False, computed=None)


def _retagged(value: object, kind: str) -> object:
    before, content = parted(value)
    return value if not before else stored(kind, content)


def _binary(lsn: int) -> bytes:
    return lsn.to_bytes(10)
