"""The rows of one copy in a target table that others share. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema


@dataclass(frozen=True)
class OwnRows:
    """Those with ``value`` in ``column``, which is never NULL."""

    column: Column
    value: str


def own_rows(rule: TableRule) -> OwnRows | None:
    """None if the table belongs to one copy."""
    if not rule.shard_column:
        return None
    return OwnRows(Column(rule.shard_column, LogicalType(Kind.TEXT), nullable=False), rule.shard_value)


def has_own_rows(schema: TableSchema | None) -> bool:
    """Whether a copy with this schema shares its table: its key begins with a column that the source does not have."""
    origin = schema.column(schema.key[0]).origin if schema and schema.key else None
    return origin is not None and not origin.name
