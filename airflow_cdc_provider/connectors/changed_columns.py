"""Changed columns that no change in the window contains: the catalog had them before the window's limit was taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from airflow_cdc_provider.connectors.source import StreamItem
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.schema_changes import ChangeKind, column_changes


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
        changed = [known for known in _known_schemas(task, latest) if _has_changed(task, known, task.table in latest)]
        if changed:
            added = frozenset(name for known in changed for name in set(task.schema.names) - set(known.names))
            items += [task.schema, schema_record(task.schema, order_key, position, has_unknown_initial(task, added))]
    return items


def _known_schemas(task: TableTask, latest: Mapping[str, TableSchema]) -> list[TableSchema]:
    """Of the copies that take changes, after the last change of the table."""
    views = [view.schema for view in task.views if view.takes_changes and view.schema]
    return [latest[task.table]] if views and task.table in latest else views


def _has_changed(task: TableTask, known: TableSchema, is_last: bool) -> bool:
    """``is_last``: of the last change; the catalog may have been read before it."""
    changes = column_changes(known, task.schema)
    return any(change.kind is ChangeKind.ADD_COLUMN for change in changes) if is_last else bool(changes)


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
