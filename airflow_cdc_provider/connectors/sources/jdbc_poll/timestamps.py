"""Which columns probably contain the time of a row's last change. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow_cdc_provider.core.spec.selection import matches
from airflow_cdc_provider.core.table.schema import Kind, TableSchema

CHANGED = re.compile(r"updat|modif|chang|touch|last_?mod", re.IGNORECASE)
TIMES = frozenset({Kind.TIMESTAMP, Kind.TIMESTAMPTZ})


def propose_timestamps(tables: Iterable[TableSchema], patterns: Sequence[str], given: str = "") -> Mapping[str, Any]:
    """``timestamp_column``: the name that most tables have; ``timestamp_columns``: those of the other tables. Nothing
    if no column has such a name. ``given``: the user's own choice of the first."""
    chosen = [one for one in tables if not patterns or any(matches(pattern, one.table) for pattern in patterns)]
    candidates = {table.table: _candidates(table) for table in chosen}
    counts = Counter(name for names in candidates.values() for name in names)
    default = given or max(counts, key=lambda name: (counts[name], name), default="")
    if not default:
        return {}
    others = {
        table.table: candidates[table.table][0]
        for table in chosen
        if default not in table.names and candidates[table.table]
    }
    return {"timestamp_column": default, **({"timestamp_columns": others} if others else {})}


def _candidates(table: TableSchema) -> list[str]:
    return [column.name for column in table.columns if column.type.kind in TIMES and CHANGED.search(column.name)]
