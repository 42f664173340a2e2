"""The columns of a copy beside those of its source. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_cdc_provider.core.columns.copied import source_type
from airflow_cdc_provider.core.table.schema import TableSchema


@dataclass(frozen=True)
class ColumnPair:
    """``name``, ``target_type``: in the copy. ``source``, ``source_type``: in the source; empty for a column that the
    copy adds. ``converted``: the copy has other values; ``masked``: which do not reveal the source's."""

    name: str
    target_type: str
    source: str
    source_type: str
    key: bool
    nullable: bool
    converted: bool
    masked: bool


def column_pairs(schema: TableSchema, target_types: Sequence[str]) -> list[ColumnPair]:
    """``target_types``: of the columns of ``schema``, in its order."""
    return [
        ColumnPair(
            column.name,
            target_type,
            column.source_name,
            source_type(column),
            column.name in schema.key,
            column.nullable,
            column.is_converted,
            column.is_masked,
        )
        for column, target_type in zip(schema.columns, target_types, strict=True)
    ]
