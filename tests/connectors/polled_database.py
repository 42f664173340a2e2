"""A connector for a database, and a plain copy of one table that its windows are applied to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from airflow_cdc_provider.connectors.source import Boundary, Copy, SplitRead, StreamItem
from airflow_cdc_provider.connectors.sources.jdbc_poll.source import JdbcPollSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.spec.definition import Source
from tests.connectors.table_tasks import table_task

Row = dict[str, Any]


class Polling:
    """Windows are applied as they are read. The latencies are one second, so that tests need not wait."""

    def __init__(self, driver: str, info: ConnectionInfo, **options: Any) -> None:
        given = {"driver": driver, "timestamp_column": "updated_at", "commit_latency": 1, **options}
        self.source = JdbcPollSource(Source("jdbc_poll", "db", options=given), info, "shop")
        self.position: Position = {}
        self.rows: dict[str, dict[str, Row]] = {}

    def task(self, table: str, **rule: Any) -> TableTask:
        return table_task(self.source.tables(), table, **rule)

    def copy(self, task: TableTask) -> Copy:
        with self.source.copy(task, 1, self.position, 4) as copy:
            assert isinstance(copy.read, SplitRead)
            tables = [table for split in copy.read.splits for table in self.source.read_split(split, copy.schema)]
        made = [row for table in tables for row in table.to_pylist()]
        self.rows[task.table] = {json.dumps([row[name] for name in copy.schema.key], default=str): row for row in made}
        return copy

    def window(self, *tasks: TableTask) -> list[StreamItem]:
        status = self.source.status(self.position, [task.table for task in tasks])
        if not status.has_changes:
            self.position = status.idle or self.position
            return []
        items: list[StreamItem] = []
        for split in self.source.splits(self.position, status.limit):
            for item in self.source.read(split, tasks, 1):
                items.append(item)
                if isinstance(item, Boundary):
                    self.position = {**self.position, **item.position}
        return items


def images(items: Sequence[StreamItem]) -> list[tuple[str, Any]]:
    """Operation and image, or the key of a deleted row."""
    found = [item for item in items if isinstance(item, ChangeRecord)]
    return [(str(one.op), json.loads(one.after or one.key_before or "null")) for one in found]
