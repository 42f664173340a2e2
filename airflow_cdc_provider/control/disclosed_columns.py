"""The columns of sensitive tables that may be copied although the YAML does not name them. They are listed in staging,
per table of the source, so that every copy of a table is made with the same columns, whenever it is made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.spec.selected_columns import disclosed_columns
from airflow_cdc_provider.core.spec.selection import Selection
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import TableSchema

Disclosed = Mapping[str, Mapping[str, str]]
"""Table of the source → name → id."""


def find_disclosed(
    replicator: Replicator, selections: Sequence[Selection], controls: Mapping[str, ControlRecord | None]
) -> Disclosed:
    """``controls``: by copy, as far as they are known."""
    sensitive = {one.source_table: one.selected for one in selections if one.rule.sensitive}
    copied = defaultdict[str, list[TableSchema]](list)
    for control in controls.values():
        if control is not None and control.schema is not None:
            copied[control.source_table].append(control.schema)
    log = replicator.log
    return {
        table: disclosed_columns(log.disclosed(table), selected, copied[table]) for table, selected in sensitive.items()
    }


def write_disclosed(replicator: Replicator, disclosed: Disclosed) -> None:
    """Before anything is copied by it."""
    for table, columns in disclosed.items():
        if replicator.log.disclosed(table) != columns:
            replicator.log.write_disclosed(table, columns)
