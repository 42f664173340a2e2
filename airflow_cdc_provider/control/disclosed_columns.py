"""The columns of sensitive tables that may be copied although the YAML does not name them. They are listed in staging,
per table of the source, so that every copy of a table is made with the same columns, whenever it is made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.spec.selected_columns import disclosed_columns
from airflow_cdc_provider.core.spec.selection import Selection
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import TableSchema

Columns = Mapping[str, Mapping[str, str]]
"""Table of the source → name → id."""


@dataclass(frozen=True)
class Disclosed:
    """``unwritten``: those of ``columns`` that differ from the list in staging."""

    columns: Columns
    unwritten: Columns


def find_disclosed(
    replicator: Replicator, selections: Sequence[Selection], controls: Mapping[str, ControlRecord | None]
) -> Disclosed:
    """``controls``: by copy, as far as they are known."""
    sensitive = {one.source_table: one.selected for one in selections if one.rule.sensitive}
    copied = defaultdict[str, list[TableSchema]](list)
    for control in controls.values():
        if control is not None and control.schema is not None:
            copied[control.source_table].append(control.schema)
    before = {table: replicator.log.disclosed(table) for table in sensitive}
    columns = {
        table: disclosed_columns(before[table], selected, copied[table]) for table, selected in sensitive.items()
    }
    return Disclosed(columns, {table: names for table, names in columns.items() if names != before[table]})


def write_disclosed(replicator: Replicator, disclosed: Disclosed) -> None:
    """Before anything is copied by it."""
    for table, columns in disclosed.unwritten.items():
        replicator.log.write_disclosed(table, columns)
