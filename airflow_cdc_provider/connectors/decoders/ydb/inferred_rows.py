"""A row of a feed whose table nobody knows, as it looks by itself: for people, never for a copy. Pure.

A feed names no key columns, so they are numbered; which columns a row lacks, nobody can tell.
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

LOOKS = {bool: Kind.BOOLEAN, int: Kind.INT64, Decimal: Kind.FLOAT64, dict: Kind.JSON, list: Kind.JSON}
GUESSED = "schema_guessed"


def numbered(key: Any) -> dict[str, Any]:
    """The values of a key, each under a name of its own."""
    return {f"key_{place}": value for place, value in enumerate(key, 1)} if isinstance(key, list) else {}


def guessed(table: str, key: Mapping[str, Any], *rows: Any) -> RowImages:
    """Of this key, and these rows where they are any. Values stand as the feed tells them."""
    told = dict(key)
    for row in rows:
        if isinstance(row, dict):
            told |= {name: value for name, value in row.items() if told.get(name) is None}
    columns = tuple(Column(name, LogicalType(LOOKS.get(type(value), Kind.TEXT))) for name, value in told.items())
    return RowImages(TableSchema(table, columns, tuple(key)), [dumps] * len(columns))


def marked(record: ChangeRecord) -> ChangeRecord:
    return replace(record, before_complete=False, after_complete=False, warnings=(*record.warnings, GUESSED))
