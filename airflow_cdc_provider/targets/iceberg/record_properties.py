"""A control record as properties of a snapshot.

Its schema, identity and comments change rarely and are stored once, as table properties that the snapshot refers to by
id: every commit rewrites a table's metadata with all of its snapshots.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace

from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.identity import TableIdentity
from airflow_cdc_provider.core.table.schema import TableSchema

RECORD = "cdc.record"
SCHEMA = "cdc.schema"
IDENTITY = "cdc.identity"
COMMENTS = "cdc.comments"
REPLICATOR = "cdc.replicator"
TABLE = "cdc.table"


def snapshot_properties(record: ControlRecord) -> dict[str, str]:
    return {
        REPLICATOR: record.replicator,
        TABLE: record.table,
        RECORD: _text(to_plain(replace(record, schema=None, identity=None, comments={}))),
        **{name: id for name, (id, _) in _separate_parts(record).items()},
    }


def table_properties(record: ControlRecord) -> dict[str, str]:
    """The table properties with the record's schema, identity and comments."""
    return {f"{name}.{id}": text for name, (id, text) in _separate_parts(record).items()}


def _separate_parts(record: ControlRecord) -> dict[str, tuple[str, str]]:
    """Property → id and text."""
    parts: dict[str, tuple[str, str]] = {}
    if record.schema:
        parts[SCHEMA] = record.schema.schema_id, _text(to_plain(record.schema))
    if record.identity:
        text = _text(to_plain(record.identity))
        parts[IDENTITY] = hashlib.sha256(text.encode()).hexdigest()[:16], text
    if record.comments:
        text = _text(record.comments)
        parts[COMMENTS] = hashlib.sha256(text.encode()).hexdigest()[:16], text
    return parts


def own_record(
    summary: Mapping[str, str], properties: Mapping[str, str], replicator: str, table: str
) -> ControlRecord | None:
    """The record in a snapshot; None if it is not one of this replicator and table."""
    if (summary.get(REPLICATOR), summary.get(TABLE)) != (replicator, table) or RECORD not in summary:
        return None
    record = from_plain(ControlRecord, json.loads(summary[RECORD]))
    schema, identity, comments = (
        properties.get(f"{name}.{summary.get(name, '')}") for name in (SCHEMA, IDENTITY, COMMENTS)
    )
    return replace(
        record,
        schema=from_plain(TableSchema, json.loads(schema)) if schema else None,
        identity=from_plain(TableIdentity, json.loads(identity)) if identity else None,
        comments=json.loads(comments) if comments else {},
    )


def is_of_shared_table(summary: Mapping[str, str], replicator: str) -> bool:
    """Whether a snapshot has the record of a copy of this replicator that shares its table with others."""
    if summary.get(REPLICATOR) != replicator or RECORD not in summary:
        return False
    return from_plain(ControlRecord, json.loads(summary[RECORD])).shared


def _text(plain: object) -> str:
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
