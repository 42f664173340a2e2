"""The types that columns of a table have had, by the change log."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from airflow_cdc_provider.core.table.schema import Column, LogicalType
from airflow_cdc_provider.staging.change_log import ChangeLog


def with_other_logged_types(
    log: ChangeLog, table: str, columns: Sequence[Column], column_id: Callable[[str], str]
) -> list[str]:
    """Names of those of ``columns`` that have had another type, for targets that do not show the types of a table.
    ``table``: of the log. ``column_id``: equal for names that are one to the target."""
    types: dict[str, set[LogicalType]] = {}
    for schema in log.schemas(table) if columns else ():
        for column in schema.columns:
            types.setdefault(column_id(column.name), set()).add(column.type)
    return [column.name for column in columns if types.get(column_id(column.name), set()) - {column.type}]
