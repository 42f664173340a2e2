"""Settings and columns of a Delta table under which fences do not hold, or values are not kept."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.unfit import Unfit
from airflow_cdc_provider.targets.delta.ddl import UNFENCEABLE_FEATURES
from airflow_cdc_provider.targets.sparksql.table_columns import unfit_columns

RETENTION = "delta.setTransactionRetentionDuration"


def unfit(delta_table: Any, path: str, schema: TableSchema | None, shared: bool) -> Unfit | None:
    """``delta_table``: opened at its newest version. ``schema``: of the copy, None if that is unknown."""
    if RETENTION in delta_table.metadata().configuration:
        do = f"ALTER TABLE delta.`{path}` UNSET TBLPROPERTIES ('{RETENTION}')"
        return Unfit(Problem("TGT013", f"{RETENTION} lets Delta delete our commit tokens", path, "set", "unset", do))
    features = UNFENCEABLE_FEATURES & set(delta_table.protocol().writer_features or ())
    if features:
        do = "ALTER TABLE … DROP FEATURE for each of them, or resync into a new table"
        what, found = "table features that do not support fences", ", ".join(sorted(features))
        return Unfit(Problem("TGT018", what, path, found, "", do))
    types = {field.name.lower(): _type_name(field.type) for field in delta_table.schema().fields}
    return unfit_columns(path, types, schema, shared) if schema else None


def _type_name(kind: Any) -> str:
    """Of a nested type, which no copy has, all."""
    return str(getattr(kind, "type", kind))
