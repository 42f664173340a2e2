"""Avro container files, written by fastavro: an independent writer."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from fastavro import parse_schema, writer


def nullable(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


def logical(kind: str, logical_type: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_type, **more}


def schema(metadata: Sequence[dict[str, Any]], payload: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The envelope of a Datastream file."""
    return {
        "type": "record",
        "name": "datastream_event",
        "fields": [
            nullable("stream_name", "string"),
            nullable("read_method", "string"),
            nullable("object", "string"),
            nullable("schema_key", "string"),
            nullable("uuid", "string"),
            nullable("read_timestamp", logical("long", "timestamp-millis")),
            nullable("source_timestamp", logical("long", "timestamp-millis")),
            nullable("sort_keys", {"type": "array", "items": ["string", "long"]}),
            nullable("source_metadata", {"type": "record", "name": "metadata", "fields": list(metadata)}),
            nullable("payload", {"type": "record", "name": "row", "fields": list(payload)}),
        ],
    }


def file(told: Mapping[str, Any], events: Sequence[Mapping[str, Any]], codec: str = "null") -> bytes:
    written = io.BytesIO()
    writer(written, parse_schema(dict(told)), events, codec=codec, sync_marker=b"0123456789abcdef")
    return written.getvalue()


def strings(*names: str) -> list[dict[str, Any]]:
    return [nullable(name, "string") for name in names]


MYSQL = [
    *strings("table", "database", "change_type", "log_file"),
    nullable("log_position", "long"),
    nullable("primary_keys", {"type": "array", "items": "string"}),
    nullable("is_deleted", "boolean"),
]
