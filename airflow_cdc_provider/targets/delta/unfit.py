"""Settings of a Delta table under which fences or comparisons of texts do not hold."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.table.unfit import Unfit
from airflow_cdc_provider.targets.delta.ddl import UNFENCEABLE_FEATURES

RETENTION = "delta.setTransactionRetentionDuration"


def unfit(delta_table: Any, path: str) -> Unfit | None:
    """``delta_table``: opened at its newest version."""
    if RETENTION in delta_table.metadata().configuration:
        do = f"ALTER TABLE delta.`{path}` UNSET TBLPROPERTIES ('{RETENTION}')"
        return Unfit(Problem("TGT013", f"{RETENTION} lets Delta delete our commit tokens", path, "set", "unset", do))
    features = UNFENCEABLE_FEATURES & set(delta_table.protocol().writer_features or ())
    if features:
        do = "ALTER TABLE … DROP FEATURE for each of them, or resync into a new table"
        what, found = "table features that do not support fences", ", ".join(sorted(features))
        return Unfit(Problem("TGT018", what, path, found, "", do))
    return None
