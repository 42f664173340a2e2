"""Whether the rows that a comparison found different can be repaired. Pure."""

from __future__ import annotations

from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.source_names import in_shell


def why_not_repaired(
    replicator: str, rule: TableRule, schema: TableSchema, control: ControlRecord, positioned: bool, more: bool
) -> str:
    """One line; empty if they can be. ``positioned``: the source shows its rows at a position of its stream. ``more``:
    more rows differ than are listed."""
    resync = f"airflow cdc resync {replicator} --table {in_shell(schema.table)}"
    if not schema.key:
        return f"the table has no key, and equal rows cannot be distinguished; do: {resync}"
    if rule.history is not History.NONE:
        return f"the copy is a history, whose versions the source does not have; do: {resync}"
    if not control.extent.is_whole:
        return f"the table is not copied as a whole, and may lack rows of the source; do: {resync}"
    if not positioned:
        return f"the source does not show at which position of its stream a row was read; do: {resync}"
    if more:
        return f"more rows differ than are repaired one by one; do: {resync}"
    if control.carry.waiting:
        return f"{control.carry.waiting} records of the table wait; do: airflow cdc quarantine list {replicator}"
    return ""
