"""The rows of one copy in a target table that others share. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.history import SEQUENCE
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
    """Whether a copy with this schema shares its table: its key begins with a column that the source does not have, and
    that is not the order of a history."""
    if schema is None or not schema.key or schema.key[0] == SEQUENCE:
        return False
    origin = schema.column(schema.key[0]).origin
    return origin is not None and not origin.name


def own_rows_of(control: ControlRecord | None) -> OwnRows | None:
    """Those of a copy with this control record. None if the table belongs to one copy."""
    schema = control.schema if control and control.shard_value else None
    if control is None or schema is None or not has_own_rows(schema):
        return None
    return OwnRows(schema.column(schema.key[0]), control.shard_value)


def leading_columns(schema: TableSchema) -> tuple[str, ...]:
    """The first columns of the key by whose values files are skipped: the first one, and in a shared table also the
    next one, since the first one has the same value in all rows of the copy."""
    return schema.key[: 2 if has_own_rows(schema) else 1]


def bounded_column(schema: TableSchema) -> Column:
    """The first column of the key that differs between the rows of a copy."""
    return schema.column(leading_columns(schema)[-1])
