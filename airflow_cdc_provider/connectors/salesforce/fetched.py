"""A record that was fetched by its id, as an image of its row. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import Any

from airflow_cdc_provider.connectors.salesforce.unreadable import Unreadable
from airflow_cdc_provider.connectors.salesforce.values import WrongValue, from_json
from airflow_cdc_provider.core.tables import TableSchema


def fetched_image(row: Mapping[str, Any], schema: TableSchema) -> tuple[str, tuple[str, ...]]:
    """Canonical JSON of all columns, as an event would tell them, and warnings. ``row`` has its reals as Decimal.
    Raises Unreadable where a value is none of its column's type."""
    warnings: list[str] = []
    members = []
    for column in schema.columns:
        try:
            text = from_json(column.type, warnings.append)(row[column.name])
        except WrongValue as error:
            raise Unreadable(f"column {column.name}: {error}") from error
        members.append(f"{encode_basestring(column.name)}:{text}")
    return f"{{{','.join(members)}}}", tuple(dict.fromkeys(warnings))
