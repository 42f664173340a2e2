"""Alterations of columns of an Iceberg table. They change only its metadata: columns have ids, types are promoted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow_cdc_provider.core.table.alterations import Alter, Alteration
from airflow_cdc_provider.core.table.schema import Kind, LogicalType
from airflow_cdc_provider.targets.sparksql.names import quoted, text_literal
from airflow_cdc_provider.targets.sparksql.types import column_type

PROMOTED = {Kind.INT64: "long", Kind.FLOAT64: "double"}
"""Integers of 16 and 32 bits are one type in Iceberg."""


def statements(table: str, alterations: Sequence[Alteration]) -> tuple[str, ...] | None:
    """As Spark SQL; None if Iceberg cannot execute one of them. ``table``: SQL."""
    texts = []
    for one in alterations:
        name = quoted(one.column.name)
        match one.kind:
            case Alter.RENAME if one.to:
                texts.append(f"ALTER TABLE {table} RENAME COLUMN {name} TO {quoted(one.to.name)};")
            case Alter.WIDEN if one.to:
                if not _is_promoted(one.column.type, one.to.type):
                    return None
                if one.to.type.kind is not Kind.INT32:
                    texts.append(f"ALTER TABLE {table} ALTER COLUMN {name} TYPE {column_type(one.to.type)};")
            case Alter.COMMENT:
                texts.append(f"ALTER TABLE {table} ALTER COLUMN {name} COMMENT {text_literal(one.comment)};")
            case _:
                texts.append(f"ALTER TABLE {table} DROP COLUMN {name};")
        if one.kind is Alter.SET_NULL:
            texts.append(f"ALTER TABLE {table} ADD COLUMN {name} {column_type(one.column.type)};")
    return tuple(texts)


def alter_column(update: Any, one: Alteration) -> None:
    """``update``: pyiceberg's update of a schema. A column without its values is dropped here."""
    from pyiceberg.types import DecimalType, DoubleType, LongType

    name = (one.column.name,)
    match one.kind:
        case Alter.RENAME if one.to:
            update.rename_column(name, one.to.name)
        case Alter.WIDEN if one.to:
            kind = one.to.type
            if kind.kind is Kind.DECIMAL:
                update.update_column(name, DecimalType(kind.precision, kind.scale))
            elif kind.kind in PROMOTED:
                update.update_column(name, LongType() if kind.kind is Kind.INT64 else DoubleType())
        case Alter.COMMENT:
            update.update_column(name, doc=one.comment)
        case _:
            update.delete_column(name)


def _is_promoted(before: LogicalType, after: LogicalType) -> bool:
    """Decimals keep their scale."""
    if after.kind is Kind.DECIMAL:
        return before.scale == after.scale
    return after.kind in {Kind.INT32, *PROMOTED}
