"""Messages of a real Debezium with Apicurio's AvroConverter give the records that another connector's JSON about the
same changes gives, and the copies equal the source.

``python -m tests.debezium.record_avro`` records them again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Item, Message
from airflow_cdc_provider.core.log.change_records import CONTROL_OPERATIONS, ChangeRecord, Operation
from airflow_cdc_provider.core.table.schema import TableSchema
from tests.connectors.formats.golden import decoder, records
from tests.connectors.formats.invariants import require_valid
from tests.connectors.formats.test_recorded_debezium import copied, end, schemas_of
from tests.connectors.registry.schema_files import SchemasInMemory, offline
from tests.debezium.record_avro import PREFIXES, AvroRecording, read_recording

OF_THE_CONNECTOR = ("name", "ts_ms", "ts_us", "ts_ns", "version")
"""Members of the position that differ between two connectors."""


@cache
def recording(source: str) -> AvroRecording:
    return read_recording(source)


def decoded(messages: Iterable[Message], prefix: str) -> list[Item]:
    reader = decoder("debezium", DecoderSettings(1, None, {"topic_prefix": prefix}))
    items: list[Item] = []
    for message in messages:
        found = reader.decode(message)
        require_valid(message, found)
        items += found
    return items


def of_avro(source: str) -> list[Item]:
    files = SchemasInMemory(dict(recording(source).schemas))
    return decoded(offline(files).messages(recording(source).avro), f"{PREFIXES[source]}_avro")


@pytest.mark.parametrize("source", PREFIXES)
def test_every_copy_equals_the_source(source: str) -> None:
    items = of_avro(source)
    assert [record.after for record in records(items) if record.op == Operation.UNREADABLE] == []
    schemas = schemas_of(items)
    assert schemas.keys() == end(source).keys()
    for table, rows in end(source).items():
        assert copied(records(items), schemas[table]) == sorted(rows, key=str), table


@pytest.mark.parametrize("source", PREFIXES)
def test_changes_give_the_records_of_json(source: str) -> None:
    """Rows of snapshots have positions of their own."""
    as_json, of_registry = decoded(recording(source).as_json, PREFIXES[source]), of_avro(source)
    changes = [comparable(record) for record in streamed(of_registry)]
    assert changes == [comparable(record) for record in streamed(as_json)]
    assert len(changes) > 25
    assert schemas_in(of_registry) == schemas_in(as_json)


def streamed(items: Iterable[Item]) -> list[ChangeRecord]:
    rows = (record for record in items if isinstance(record, ChangeRecord) and record.op not in CONTROL_OPERATIONS)
    return sorted((record for record in rows if record.snapshot == "none"), key=lambda one: (one.table, one.order_key))


def schemas_in(items: Iterable[Item]) -> set[TableSchema]:
    return {item for item in items if isinstance(item, TableSchema)}


def comparable(record: ChangeRecord) -> ChangeRecord:
    return replace(record, position=json.dumps(_without_connector(json.loads(record.position))))


def _without_connector(position: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _without_connector(value) if isinstance(value, dict) else value
        for name, value in position.items()
        if name not in OF_THE_CONNECTOR
    }
