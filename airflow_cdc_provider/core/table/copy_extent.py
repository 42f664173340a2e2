"""Which rows of its source table a full copy has read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from airflow_cdc_provider.core.spec.conditions import Condition
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.schema_changes import same_columns


@dataclass(frozen=True)
class CopyExtent:
    """``rows``: False if it has read none. ``where``: it has read only rows that match these conditions of columns of
    the source, beside the row filter of the table.

    A copy has at least every row that matches now, and every row that changed after it: a row that did not match then
    can match now only by a change."""

    rows: bool = True
    where: tuple[Condition, ...] = ()

    @property
    def is_whole(self) -> bool:
        return self.rows and not self.where


WHOLE = CopyExtent()


def extent_after(
    extent: CopyExtent, before: TableSchema, after: TableSchema, renamed: Mapping[str, str] | None = None
) -> CopyExtent:
    """The extent of a copy whose schema changes. Its conditions follow renamed columns; ``renamed``: those without ids.
    Without a column that they name it is unknown which further rows of the source it must have."""
    pairs = same_columns(before.columns, after.columns, renamed)
    names = {before.column(old).source_name: after.column(new).source_name for old, new in pairs.items()}
    if any(condition.column not in names for condition in extent.where):
        return CopyExtent(rows=False)
    where = tuple(replace(condition, column=names[condition.column]) for condition in extent.where)
    return replace(extent, where=where)
