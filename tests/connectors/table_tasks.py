"""Tasks for tables of a real source, as a run builds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.spec.definition import Columns, Condition, OnUnrepresentable, TableRule
from airflow_cdc_provider.core.spec.selected_columns import selected_schema
from airflow_cdc_provider.core.spec.snapshot import Snapshot
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.states import State, TableState


def table_task(
    schemas: Iterable[TableSchema],
    table: str,
    held: TableSchema | None = None,
    *,
    replicator: str = "r",
    columns: Columns | None = None,
    where: Sequence[Condition] = (),
    key: Sequence[str] = (),
    on_unrepresentable: OnUnrepresentable = OnUnrepresentable.STOP,
    snapshot: Snapshot | None = None,
) -> TableTask:
    """``schemas``: those of the source. ``held``: the schema of the target."""
    rule = TableRule(
        table,
        columns=columns or Columns(),
        where=tuple(where),
        key=tuple(key),
        on_unrepresentable=on_unrepresentable,
        snapshot=snapshot or Snapshot(),
    )
    schema = selected_schema(rule, next(one for one in schemas if one.table == table))
    control = None
    if held is not None:
        state = State(TableState.REPLICATING, "2026-01-01T00:00:00Z")
        control = ControlRecord(replicator, table, "log", "me", "a", 1, 1, "0", state, schema=held)
    return TableTask(table, table, schema, rule, "0" * 64, TableState.REPLICATING, control)
