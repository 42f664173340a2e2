"""The states of tables in a database. A database has only the current state, so a reader polls it and keeps each state:
the control row and the rows in one snapshot."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import psycopg
import pymysql
from pymysql.cursors import DictCursor

from tests.faults.checker.commits import Commit, commit
from tests.faults.checker.ledger import Shape

EVERY_S = 0.15
PIECES = ("record", "record_2", "record_3", "record_4")
MARK = re.compile(r"cdc:([0-9a-f]{32})")


State = tuple[dict[str, Any], list[dict[str, Any]]]
"""The control record and the rows, in one snapshot."""


class ReadsStates(Protocol):
    def state(self, shape: Shape) -> State | None:
        """None where there is no copy, or where it is replaced during the read."""

    def texts(self, tables: Sequence[str]) -> list[str]:
        """The control records of all copies."""


@dataclass(frozen=True)
class Server:
    """``kind``: the type of the target; ``options`` are what the driver takes to connect. The driver of Redshift is
    that of the PostgreSQL behind it."""

    kind: str
    schema: str
    options: dict[str, Any] = field(repr=False)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Any]:
        """A cursor in one snapshot, rows by name."""
        if self.kind == "mysql":
            with pymysql.connect(**self.options, cursorclass=DictCursor) as connection:
                cursor = connection.cursor()
                cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
                yield cursor
        else:
            with psycopg.connect(**self.options, row_factory=psycopg.rows.dict_row) as connection:
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                yield connection.cursor()

    def state(self, shape: Shape) -> State | None:
        """The control row of a copy is found by the identity of the table and by its record: our own tables have names
        of their own for copies in a shared table."""
        table = shape.target
        record = " || ".join(PIECES) if self.kind == "redshift" else "record"
        try:
            with self.snapshot() as cursor:
                identity = self._identity(cursor, table)
                if not identity:
                    return None
                control = f"{self.schema}.{self._control(table)}"
                cursor.execute(f"SELECT {record} AS r FROM {control} WHERE identity = %s", (identity,))
                records = [json.loads(row["r"]) for row in cursor.fetchall()]
                own = [one for one in records if one["table"] == shape.copy]
                cursor.execute(f"SELECT * FROM {self.schema}.{table}")
                rows = list(cursor.fetchall())
                if not own or self._identity(cursor, table) != identity:
                    return None
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedObject, pymysql.err.Error):
            return None  # the copy is being replaced
        (only,) = own
        return only, rows

    def texts(self, tables: Sequence[str]) -> list[str]:
        found: list[str] = []
        for control in sorted({self._control(table) for table in tables}):
            try:
                with self.snapshot() as cursor:
                    cursor.execute(f"SELECT record AS r FROM {self.schema}.{control}")
                    found += [str(row["r"]) for row in cursor.fetchall()]
            except (psycopg.errors.UndefinedTable, pymysql.err.ProgrammingError):
                continue  # there is no copy yet
        return found

    def _control(self, table: str) -> str:
        return own_control_table(table) if self.kind == "redshift" else "_cdc_control"

    def _identity(self, cursor: Any, table: str) -> str:
        query = (
            "SELECT coalesce(max(table_comment), '') AS c FROM information_schema.tables"
            " WHERE concat(table_schema, '.', table_name) = %s"
            if self.kind == "mysql"
            else "SELECT coalesce(obj_description(to_regclass(%s)), '') AS c"
        )
        cursor.execute(query, (f"{self.schema}.{table}",))
        found = MARK.search(cursor.fetchone()["c"])
        return found[1] if found else ""


def own_control_table(table: str) -> str:
    return f"_cdc_control_{hashlib.sha256(table.encode()).hexdigest()[:12]}"


class PollingReader:
    """Polls in a thread of its own while it is entered. ``seen``: the distinct states of each copy."""

    def __init__(self, server: ReadsStates) -> None:
        self.server = server
        self.shapes: Sequence[Shape] = ()
        self.seen: dict[str, list[Commit]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="reader", daemon=True)
        self._lock = threading.Lock()
        self.error: BaseException | None = None

    def __enter__(self) -> PollingReader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def commits(self, shape: Shape, known: Container[int]) -> list[Commit]:
        if self.error:
            raise self.error
        self.read_state(shape)
        return [one for one in self.seen.get(shape.copy, ()) if one.number not in known]

    def missing_files(self, shape: Shape) -> list[str]:
        return []

    def commit_files(self, shape: Shape) -> dict[str, str]:
        return {}

    def texts(self) -> list[str]:
        """The texts in the control tables of the product."""
        return self.server.texts([shape.target for shape in self.shapes])

    def read_state(self, shape: Shape) -> None:
        with self._lock:
            found = self._state(shape)
            states = self.seen.setdefault(shape.copy, [])
            if found is not None and (not states or _differs(states[-1], found)):
                states.append(found)

    def _poll(self) -> None:
        try:
            while not self._stop.wait(EVERY_S):
                for shape in self.shapes:
                    self.read_state(shape)
        except BaseException as error:
            self.error = error

    def _state(self, shape: Shape) -> Commit | None:
        """None where there is no copy, or where it is replaced during the read."""
        found = self.server.state(shape)
        return found and commit(len(self.seen.get(shape.copy, ())), found[0], shape, found[1])


def _differs(before: Commit, now: Commit) -> bool:
    assert before.record is not None and now.record is not None
    same = before.record["nonce"] == now.record["nonce"]
    return not same or (before.rows, before.flagged) != (now.rows, now.flagged)
