"""The states of tables in a schema of Snowflake, read by its own client: a transaction reads committed data of each
statement, so a state counts if the control row is the same before and after the read of the rows."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import snowflake.connector
from snowflake.connector import DictCursor
from snowflake.connector.errors import ProgrammingError

from tests.faults.checker.database import State, own_control_table
from tests.faults.checker.ledger import Shape

MARK = re.compile(r"cdc:([0-9a-f]{32})")


@dataclass(frozen=True)
class Schema:
    """``options``: what the client takes to connect. Each thread keeps its session: a login takes longer than all
    queries of a state."""

    database: str
    name: str
    options: dict[str, Any] = field(repr=False)
    _of_thread: threading.local = field(default_factory=threading.local, repr=False)

    def state(self, shape: Shape) -> State | None:
        table = shape.target
        cursor = self._cursor()
        try:
            identity, record = self._control(cursor, table)
            if not record:
                return None
            cursor.execute(f"SELECT * FROM {self.database}.{self.name}.{table.upper()}")
            rows = [{name.lower(): value for name, value in row.items()} for row in cursor.fetchall()]
            if self._control(cursor, table) != (identity, record):
                return None
        except ProgrammingError:
            return None  # the copy is being replaced, or there is none
        return json.loads(record), rows

    def texts(self, tables: Sequence[str]) -> list[str]:
        found: list[str] = []
        cursor = self._cursor()
        for table in tables:
            with contextlib.suppress(ProgrammingError):  # there is no copy yet
                cursor.execute(f"SELECT RECORD AS R FROM {self._control_table(table)}")
                found += [row["R"] for row in cursor.fetchall()]
        return found

    def _cursor(self) -> Any:
        if not hasattr(self._of_thread, "connection"):
            self._of_thread.connection = snowflake.connector.connect(**self.options)
        return self._of_thread.connection.cursor(DictCursor)

    def _control(self, cursor: Any, table: str) -> tuple[str, str]:
        """Identity and control record; both may be empty."""
        listed = f"{self.database}.INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
        cursor.execute(f"SELECT COMMENT AS C FROM {listed}", (self.name, table.upper()))
        row = cursor.fetchone()
        found = MARK.search(row["C"] or "") if row else None
        if not found:
            return "", ""
        cursor.execute(f"SELECT RECORD AS R FROM {self._control_table(table)} WHERE IDENTITY = %s", (found[1],))
        row = cursor.fetchone()
        return found[1], row["R"] if row else ""

    def _control_table(self, table: str) -> str:
        return f'{self.database}.{self.name}."{own_control_table(table).upper()}"'
