"""A control record as properties of a snapshot.

Its schema is left out and named by its id: a table's metadata is written anew with every commit and holds all of its
snapshots, so what rarely changes stands there once, as a property of the table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from airflow_cdc_provider.core.cursors import ControlRecord
from airflow_cdc_provider.core.plain import from_plain, to_plain
from airflow_cdc_provider.core.tables import TableSchema

RECORD = "cdc.record"
SCHEMA = "cdc.schema"
REPLICATOR = "cdc.replicator"
TABLE = "cdc.table"


def snapshot_properties(record: ControlRecord) -> dict[str, str]:
    properties = {
        REPLICATOR: record.replicator,
        TABLE: record.table,
        RECORD: _text(to_plain(replace(record, schema=None))),
    }
    return properties | ({SCHEMA: record.schema.schema_id} if record.schema else {})


def schema_property(record: ControlRecord) -> dict[str, str]:
    """The property of the table that the record's schema stands in."""
    return {_schema_name(record.schema.schema_id): _text(to_plain(record.schema))} if record.schema else {}


def own_record(
    summary: Mapping[str, str], table_properties: Mapping[str, str], replicator: str, table: str
) -> ControlRecord | None:
    """The record that a snapshot carries; None where it is not one of this replicator for this table."""
    if (summary.get(REPLICATOR), summary.get(TABLE)) != (replicator, table) or RECORD not in summary:
        return None
    record = from_plain(ControlRecord, json.loads(summary[RECORD]))
    schema = table_properties.get(_schema_name(summary.get(SCHEMA, "")))
    return replace(record, schema=from_plain(TableSchema, json.loads(schema))) if schema else record


def _schema_name(schema_id: str) -> str:
    return f"{SCHEMA}.{schema_id}"


def _text(plain: object) -> str:
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
