"""Columns that no change of their table has shown yet: the catalogue had them before the window's limit was known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from airflow_cdc_provider.connectors.source import StreamItem
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.states import TAKES_CHANGES


def new_columns(
    tasks: Iterable[TableTask],
    shown: Mapping[str, TableSchema],
    order_key: str,
    position: str,
    unclear: Callable[[TableTask, frozenset[str]], bool],
) -> list[StreamItem]:
    """The schemas of such tables, each with its record at the limit. ``shown``: the schema of the latest change of each
    table. ``unclear``: whether older rows of a table may hold a value in these columns that nobody tells."""
    items: list[StreamItem] = []
    for task in tasks:
        before = shown.get(task.table, task.control.schema if task.control else None)
        added = frozenset(task.schema.names) - set(before.names) if before else frozenset[str]()
        if added and task.state in TAKES_CHANGES:
            items += [task.schema, schema_record(task.schema, order_key, position, unclear(task, added))]
    return items


def schema_record(schema: TableSchema, order_key: str, position: str, unclear: bool = False) -> ChangeRecord:
    return ChangeRecord(
        schema.table,
        Operation.SCHEMA,
        order_key,
        schema.schema_id,
        after=canonical(to_plain(schema)),
        position=position,
        event_id=order_key,
        warnings=("initial_unknown",) if unclear else (),
    )
