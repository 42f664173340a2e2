"""Transactions of sessions whose client has ended or stands still: they keep their locks for hours.

Snowflake shows a user its own transactions and lets it abort them. The session of an aborted transaction goes on in a
new one, so each commit requires that its transaction is still the one that took the lock."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.targets.database.server import IDLE_LIMIT_S
from airflow_cdc_provider.targets.snowflake.sql import SnowflakeSql, exactly

HOLDING = "HOLDING"
FINISHED = ("SUCCESS", "FAILED_WITH_ERROR", "FAILED_WITH_INCIDENT")
LAST_STATEMENTS = 10


def current_transaction(cursor: Any) -> str:
    """Empty if none is open."""
    cursor.execute("SELECT CURRENT_TRANSACTION()")
    return str(cursor.fetchone()[0] or "")


def end_idle_transactions(cursor: Any, sql: SnowflakeSql, table: str) -> None:
    """Abort the transactions that have the lock of ``table`` and whose session has run nothing for ``IDLE_LIMIT_S``."""
    resource = f"{sql.database}.{sql.schema}.{sql.name(table)}"
    held = {
        int(lock["transaction"])
        for lock in shown(cursor, "SHOW LOCKS")
        if lock["status"] == HOLDING and str(lock["resource"]).replace('"', "") == resource
    }
    if not held:
        return
    for row in shown(cursor, "SHOW TRANSACTIONS"):
        if int(row["id"]) in held and is_idle(cursor, sql, int(row["session"])):
            cursor.execute(f"SELECT SYSTEM$ABORT_TRANSACTION({int(row['id'])})")


def is_idle(cursor: Any, sql: SnowflakeSql, session: int) -> bool:
    """A session whose statements are not shown is not idle."""
    history = f"{exactly(sql.database)}.INFORMATION_SCHEMA.QUERY_HISTORY_BY_SESSION"
    finished = ", ".join(f"'{status}'" for status in FINISHED)
    long_ago = f"END_TIME < DATEADD('second', -{IDLE_LIMIT_S}, CURRENT_TIMESTAMP())"
    cursor.execute(
        f"SELECT COUNT(*), COUNT_IF(EXECUTION_STATUS IN ({finished}) AND {long_ago})"
        f" FROM TABLE({history}(SESSION_ID => {session}, RESULT_LIMIT => {LAST_STATEMENTS}))"
    )
    statements, idle = cursor.fetchone()
    return 0 < int(statements) == int(idle)


def shown(cursor: Any, command: str) -> list[dict[str, Any]]:
    """The rows of a SHOW command by the names of its columns."""
    cursor.execute(command)
    names = [column.name.lower() for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
