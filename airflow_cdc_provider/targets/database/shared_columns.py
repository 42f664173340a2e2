"""Columns of a table that several copies share."""

from __future__ import annotations

from typing import Protocol

from airflow_cdc_provider.core.spec.shards import schema_difference
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.common_checks import rows_do_not_fit
from airflow_cdc_provider.targets.database import control
from airflow_cdc_provider.targets.database.server import Server
from airflow_cdc_provider.targets.target import TargetState


class Located(Protocol):
    server: Server

    def locate(self, target_table: str) -> str: ...


def require_equal_columns(
    target: Located, target_table: str, table: str, schema: TableSchema, state: TargetState
) -> None:
    """Raises Blocked (TGT090) where a column of a copy has another type than in the rows of the others. ``table``,
    ``schema``: of the copy."""
    with target.server.session("probe") as connection:
        records = control.sharing(target.server, connection.cursor(), target_table, state.identity)
    for other in records:
        found = schema_difference(other.schema, schema) if other.schema and other.table != table else ""
        if found:
            raise rows_do_not_fit(table, target.locate(target_table), f"{found}, compared with {other.table}")
