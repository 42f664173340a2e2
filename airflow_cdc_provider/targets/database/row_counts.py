"""Numbers of rows that a commit requires, under the lock of its table."""

from __future__ import annotations

from typing import Any, Protocol

from airflow_cdc_provider.targets.database import errors
from airflow_cdc_provider.targets.database.commit import Loaded, Swap
from airflow_cdc_provider.targets.database.sql import Sql
from airflow_cdc_provider.targets.fencing import superseded


class LocatedTables(Protocol):
    @property
    def sql(self) -> Sql: ...

    def locate(self, target_table: str) -> str: ...


def require_loaded(cursor: Any, tables: LocatedTables, loaded: Loaded | None) -> None:
    """Raises TargetUnavailable where a table has not the rows that were loaded into it."""
    if loaded is None:
        return
    found = _count(cursor, tables, loaded.table)
    if found != loaded.rows:
        raise errors.incomplete_load(tables.locate(loaded.table), found, loaded.rows)


def require_all_taken_over(cursor: Any, tables: LocatedTables, swap: Swap) -> None:
    """Raises Fenced where another program has written a table that is taken over since its rows were read."""
    if not swap.expected.exists or swap.expected.control is not None:
        return
    found = _count(cursor, tables, swap.target_table)
    if found != swap.record.rows:
        read = f"{found:,} rows, and {swap.record.rows:,} when they were read"
        raise superseded(swap.record, f"another program: {read}")


def _count(cursor: Any, tables: LocatedTables, table: str) -> int:
    cursor.execute(f"SELECT count(*) FROM {tables.sql.table(table)}")
    (found,) = cursor.fetchone()
    return int(found)
