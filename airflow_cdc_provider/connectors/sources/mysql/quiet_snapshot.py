"""A transaction of MySQL that shows one table at a known position of the binlog.

MySQL does not report the position of a snapshot. It is known if no change of the table is logged while the transaction
begins.
"""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.connectors.sources.mysql.catalog import fetch_all, read_binlog_end
from airflow_cdc_provider.connectors.sources.mysql.copy import REPEATABLE
from airflow_cdc_provider.connectors.sources.mysql.positions import position_of
from airflow_cdc_provider.connectors.sources.mysql.stream import Binlog
from airflow_cdc_provider.connectors.sources.mysql.visibility import require_commit_order, wait_for_logged
from airflow_cdc_provider.core.log.positions import Position

ATTEMPTS = 50


def begin_quiet_snapshot(connection: Any, binlog: Binlog, table: str) -> Position | None:
    """Begins a transaction whose queries see ``table`` as it is at the returned position. None if the table changes
    too often. Raises SourceUnavailable (CPY007), CheckFailed (SRC095)."""
    require_commit_order(connection, binlog.client)
    fetch_all(connection, REPEATABLE)
    for _ in range(ATTEMPTS):
        before = read_binlog_end(connection, binlog.client)
        wait_for_logged(connection, binlog.client)
        fetch_all(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        after = read_binlog_end(connection, binlog.client)
        position = position_of(after.file, after.pos)
        if before == after or not binlog.has_changes(position_of(before.file, before.pos), position, table):
            return position
        fetch_all(connection, "COMMIT")
    return None
