"""Changed columns that no change in the window contains: the catalog had them before the window's limit was taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from airflow_cdc_provider.connectors.source import StreamItem
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.schema_changes import ChangeKind, column_changes
from airflow_cdc_provider.core.table.states import TAKES_CHANGES


def changed_columns(
    tasks: Iterable[TableTask],
    latest: Mapping[str, TableSchema],
    order_key: str,
    position: str,
    has_unknown_initial: Callable[[TableTask, frozenset[str]], bool],
) -> list[StreamItem]:
    """The schemas of such tables, each with its record at the limit. ``latest``: the schema of a table's last change.
    ``has_unknown_initial``: whether older rows may have values in these columns that are not known."""
    items: list[StreamItem] = []
    for task in tasks:
        previous = latest.get(task.table, task.control.schema if task.control else None)
        changes = column_changes(previous, task.schema) if previous else ()
        if task.table in latest:  # the catalog may have been read before the table's last change
            changes = tuple(change for change in changes if change.kind is ChangeKind.ADD_COLUMN)
        if previous and changes and task.state in TAKES_CHANGES:
            added = frozenset(task.schema.names) - set(previous.names)
            items += [task.schema, schema_record(task.schema, order_key, position, has_unknown_initial(task, added))]
    return items


def schema_record(schema: TableSchema, order_key: str, position: str, unknown_initial: bool = False) -> ChangeRecord:
    return ChangeRecord(
        schema.table,
        Operation.SCHEMA,
        order_key,
        schema.schema_id,
        after=canonical(schema.plain()),
        position=position,
        event_id=order_key,
        warnings=("initial_unknown",) if unknown_initial else (),
    )
