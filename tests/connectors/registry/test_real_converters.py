"""Messages of a real Debezium with Apicurio's AvroConverter and ExtJsonConverter give the records that another
connector's JSON about the same changes gives, and the copies equal the source.

``python -m tests.debezium.record_avro`` and ``python -m tests.debezium.record_ext_json`` record them again.
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
from tests.connectors.formats.test_batch_decoding import decode_both_ways
from tests.connectors.formats.test_recorded_debezium import copied, end, schemas_of
from tests.connectors.registry.schema_files import SchemasInMemory, offline
from tests.debezium.record_avro import PREFIXES, AvroRecording, read_recording

RECORDINGS = ["postgres_avro", "mariadb_avro", "postgres_ext_json"]
OF_THE_CONNECTOR = ("name", "ts_ms", "ts_us", "ts_ns", "version")
"""Members of the position that differ between two connectors."""


@cache
def recording(name: str) -> AvroRecording:
    return read_recording(name)


def source_of(name: str) -> str:
    return name.partition("_")[0]


def decoded(messages: Iterable[Message], prefix: str) -> list[Item]:
    reader = decoder("debezium", DecoderSettings(1, None, {"topic_prefix": prefix}))
    items: list[Item] = []
    for message in messages:
        found = reader.decode(message)
        require_valid(message, found)
        items += found
    return items


def of_registry(name: str) -> list[Item]:
    files = SchemasInMemory(dict(recording(name).schemas))
    source, _, converter = name.partition("_")
    return decoded(offline(files).messages(recording(name).avro), f"{PREFIXES[source]}_{converter}")


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_copy_equals_the_source(name: str) -> None:
    items, rows_at_end = of_registry(name), end(source_of(name))
    assert [record.after for record in records(items) if record.op == Operation.UNREADABLE] == []
    schemas = schemas_of(items)
    assert schemas.keys() == rows_at_end.keys()
    for table, rows in rows_at_end.items():
        assert copied(records(items), schemas[table]) == sorted(rows, key=str), table


@pytest.mark.parametrize("name", RECORDINGS)
def test_changes_give_the_records_of_json(name: str) -> None:
    """Rows of snapshots have positions of their own."""
    as_json, registered = decoded(recording(name).as_json, PREFIXES[source_of(name)]), of_registry(name)
    changes = [comparable(record) for record in streamed(registered)]
    assert changes == [comparable(record) for record in streamed(as_json)]
    assert len(changes) > 25
    assert schemas_in(registered) == schemas_in(as_json)


@pytest.mark.parametrize("name", RECORDINGS)
def test_messages_are_decoded_equally_in_batches(name: str) -> None:
    messages = list(offline(SchemasInMemory(dict(recording(name).schemas))).messages(recording(name).avro))
    together, alone, _ = decode_both_ways("debezium", DecoderSettings(), messages, 50)
    assert together == alone


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
