"""Rows of a feed whose table has no known schema, decoded by their JSON types: for display, never for a copy. Pure.

A feed does not name key columns, so they are numbered. Which columns a row lacks cannot be determined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.images import RowImages
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema

KINDS = {bool: Kind.BOOLEAN, int: Kind.INT64, Decimal: Kind.FLOAT64, dict: Kind.JSON, list: Kind.JSON}
GUESSED = "schema_guessed"


def number_key(key: Any) -> dict[str, Any]:
    """The values of a key, with generated names."""
    return {f"key_{number}": value for number, value in enumerate(key, 1)} if isinstance(key, list) else {}


def guess_images(table: str, key: Mapping[str, Any], *rows: Any) -> RowImages:
    """For the given key and rows; rows that are not objects are ignored. Values are not converted."""
    values = dict(key)
    for row in rows:
        if isinstance(row, dict):
            values |= {name: value for name, value in row.items() if values.get(name) is None}
    columns = tuple(Column(name, LogicalType(KINDS.get(type(value), Kind.TEXT))) for name, value in values.items())
    return RowImages(TableSchema(table, columns, tuple(key)), [dumps] * len(columns))


def mark_guessed(record: ChangeRecord) -> ChangeRecord:
    return replace(record, before_complete=False, after_complete=False, warnings=(*record.warnings, GUESSED))
