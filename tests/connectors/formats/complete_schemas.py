"""Simulated Debezium messages with the whole schema of their envelopes, as a converter with a registry needs it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.message import Message
from tests.connectors.formats.debezium_encoder import FIELDS

NUMBERS = frozenset({"event_serial_no", "lsn", "pos", "row", "txId", "ts_ms", "ts_us", "ssn"})
TRANSACTION = [
    {"type": "string", "optional": False, "field": "id"},
    {"type": "int64", "optional": False, "field": "total_order"},
    {"type": "int64", "optional": False, "field": "data_collection_order"},
]


def with_schemas(
    messages: Iterable[Message], name: str = "p.t", fields: Sequence[Mapping[str, Any]] = FIELDS
) -> Iterator[Message]:
    """``messages``: of an encoder without schemas. Columns that a row lacks are null."""
    for message in messages:
        key = None if message.key is None else json.loads(message.key)
        value = None if message.value is None else json.loads(message.value)
        yield message._replace(
            key=None if key is None else _text(_key(name, fields), key),
            value=None if value is None else _text(_envelope(name, fields, value), _filled(value, fields)),
        )


def _filled(value: dict[str, Any], fields: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    rows = {
        part: value[part] and {one["field"]: value[part].get(one["field"]) for one in fields}
        for part in ("before", "after")
    }
    return {**value, **rows}


def _text(schema: Any, payload: Any) -> bytes:
    return json.dumps({"schema": schema, "payload": payload}, separators=(",", ":"), ensure_ascii=False).encode()


def _key(name: str, fields: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields[:1]), "optional": False, "name": f"{name}.Key"}


def _envelope(name: str, fields: Sequence[Mapping[str, Any]], value: Mapping[str, Any]) -> dict[str, Any]:
    row = {"type": "struct", "fields": list(fields), "optional": True, "name": f"{name}.Value"}
    source = [
        {
            "type": "int64" if field in NUMBERS and not isinstance(one, str) else "string",
            "optional": True,
            "field": field,
        }
        for field, one in value["source"].items()
    ]
    return {
        "type": "struct",
        "fields": [
            {**row, "field": "before"},
            {**row, "field": "after"},
            {"type": "struct", "fields": source, "optional": False, "name": "p.Source", "field": "source"},
            {"type": "struct", "fields": TRANSACTION, "optional": True, "name": "block", "field": "transaction"},
            {"type": "string", "optional": False, "field": "op"},
            {"type": "int64", "optional": True, "field": "ts_ms"},
        ],
        "optional": False,
        "name": f"{name}.Envelope",
    }
