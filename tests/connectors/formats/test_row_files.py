"""Avro and Parquet files of Connect's sinks contain the original messages, schemas included."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from itertools import groupby
from math import isfinite, isnan
from pathlib import Path
from struct import pack
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.decoders.common import avro_codecs
from airflow_cdc_provider.connectors.decoders.common.connect_avro import form_of
from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.decoders.common.row_files import avro_messages, parquet_messages
from airflow_cdc_provider.connectors.decoders.common.saved_messages import read_messages
from airflow_cdc_provider.connectors.transports.files.source import FilesSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.spec.definition import Source, TableRule
from airflow_cdc_provider.core.table.states import TableState
from tests.blocks import unpacked
from tests.connectors.formats import avro_writer
from tests.connectors.formats.connect_writer import avro_file, parquet_file
from tests.connectors.formats.debezium_messages import CONNECT, field, struct
from tests.connectors.formats.test_recorded_debezium import PREFIXES, copied, decoded, end, schemas_of
from tests.debezium.record import RECORDED
from tests.model import seeds

Read = Callable[[dict[str, Any], Sequence[Any]], Iterator[Message]]
FILES: dict[str, Read] = {
    "avro": lambda schema, payloads: avro_messages(avro_file(schema, payloads), "f.avro", False),
    "avro, not packed": lambda schema, payloads: avro_messages(avro_file(schema, payloads, "null"), "f.avro", False),
    "parquet": lambda schema, payloads: parquet_messages(parquet_file(schema, payloads), "f.parquet"),
}
USED_MEMBERS = ("type", "optional", "name", "parameters", "field")


def used_members(schema: dict[str, Any]) -> dict[str, Any]:
    """The members of a schema that decoders use."""
    members = {name: schema[name] for name in USED_MEMBERS if schema.get(name) not in (None, {})}
    members["optional"] = schema.get("optional", False)
    if "fields" in schema:
        members["fields"] = [used_members(field) for field in schema["fields"]]
    return members | {name: used_members(schema[name]) for name in ("items", "keys", "values") if name in schema}


def recorded(source: str) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Schemas and their payloads, as a real Debezium sent them."""
    values = [one.value for one in read_messages((RECORDED / f"{source}.jsonl.gz").read_bytes(), source, "", False)]
    messages = sorted((json.loads(value) for value in values if value), key=lambda one: json.dumps(one["schema"]))
    for _, some in groupby(messages, lambda one: json.dumps(one["schema"])):
        alike = list(some)
        yield alike[0]["schema"], [one["payload"] for one in alike]


@pytest.mark.parametrize("form", FILES)
@pytest.mark.parametrize("source", ["postgres", "mariadb"])
def test_messages_of_a_real_debezium_are_read_back_unchanged(source: str, form: str) -> None:
    rows = 0
    for schema, payloads in recorded(source):
        found = [json.loads(one.value or b"") for one in FILES[form](schema, payloads)]
        assert [one["payload"] for one in found] == payloads
        assert used_members(found[0]["schema"]) | {"optional": schema.get("optional", False)} == used_members(schema)
        rows += len(payloads)
    assert rows > 50


@pytest.mark.parametrize("form", FILES)
def test_the_times_of_connect_are_read_back_as_numbers(form: str) -> None:
    kinds = [("on", "int32", "Date"), ("at", "int32", "Time"), ("then", "int64", "Timestamp")]
    members = [field(name, kind, f"{CONNECT}{semantic}") for name, kind, semantic in kinds]
    many = {"type": "array", "optional": True, "field": "many", "items": struct(*members, name="a.Inner")}
    times = {"on": -1, "at": 45296123, "then": -1}
    payloads = [{**times, "many": [times, {**times, "on": None}]}, dict.fromkeys((*times, "many"))]
    found = FILES[form](struct(*members, many, name="a.Envelope"), payloads)
    assert [json.loads(one.value or b"")["payload"] for one in found] == payloads


@pytest.mark.parametrize("write", [avro_file, parquet_file])
@pytest.mark.parametrize("source", ["postgres", "mariadb"])
def test_a_folder_of_such_files_gives_the_rows_of_the_source(
    tmp_path: Path, source: str, write: Callable[[dict[str, Any], Sequence[Any]], bytes]
) -> None:
    """The files have no keys, so the definition contains them."""
    for number, (schema, payloads) in enumerate(recorded(source)):
        (tmp_path / f"topic{number}.file").write_bytes(write(schema, payloads))
        os.utime(tmp_path / f"topic{number}.file", (0, 0))
    options = {"format": "debezium", "location": str(tmp_path), "topic_prefix": PREFIXES[source]}
    feed = FilesSource(Source("files", "", options=options), ConnectionInfo(), "shop")
    latest = schemas_of(decoded(source))
    schemas = {schema.table: replace(schema, key=latest[schema.table].key) for schema in feed.tables()}
    tasks = [TableTask(name, "t", one, TableRule(name), "", TableState.PENDING) for name, one in schemas.items()]
    limit = feed.status(feed.open_stream([]), []).limit
    items = [item for one in feed.splits({}, limit) for item in unpacked(feed.read(one, tasks, 1))]
    found = [item for item in items if isinstance(item, ChangeRecord)]
    assert end(source).keys() <= schemas.keys()
    for table, rows in end(source).items():
        assert copied(found, latest[table]) == sorted(rows, key=str), table


PLAIN = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": name, "type": kind}
        for name, kind in (("topic", "string"), ("key", ["null", "bytes"]), ("value", ["null", "bytes"]))
    ],
}


@pytest.mark.parametrize("codec", avro_writer.PACKERS)
def test_blocks_of_every_codec_are_unpacked(codec: str) -> None:
    rows = [{"topic": "t", "key": None, "value": b"x" * number} for number in range(300)]
    plain = avro_writer.file(PLAIN, rows)
    whole = avro_writer.packed(plain, codec)
    assert [*avro_messages(whole, "f", False)] == [*avro_messages(plain, "f", False)]
    at = whole.rindex(b"0123456789abcdef", 0, len(whole) - 16) + 30
    damaged = whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]
    *_, last = avro_messages(damaged, "f", False)
    assert (last.channel, last.value == damaged) == ("f", codec != "null")


def test_a_block_that_is_too_large_when_unpacked_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_codecs, "MAX_BYTES", 1000)
    plain = avro_writer.file(PLAIN, [{"topic": "t", "key": None, "value": b"x" * 10_000}])
    for codec in avro_writer.PACKERS:
        (bad,) = avro_messages(packed := avro_writer.packed(plain, codec), "f", False)
        assert bad.value == packed


def test_rows_that_contain_a_message_are_messages() -> None:
    rows = [{"topic": "t", "key": b'{"id":1}', "value": b'{"x":1}'}, {"topic": "t", "key": b"k", "value": None}]
    found = [*avro_messages(avro_writer.file(PLAIN, rows), "a/f.avro", False)]
    assert [(one.topic, one.key, one.value, one.offset) for one in found] == [
        ("t", b'{"id":1}', b'{"x":1}', 0),
        ("t", b"k", None, 1),
    ]
    out = BytesIO()
    pq.write_table(pa.table({"value": ['{"x":1}', None]}), out)
    found = [*parquet_messages(out.getvalue(), "a/f.parquet")]
    assert [(one.topic, one.channel, one.key, one.value) for one in found] == [
        ("a/f.parquet", "a/f.parquet", None, b'{"x":1}'),
        ("a/f.parquet", "a/f.parquet", None, None),
    ]


def test_rows_of_other_writers_are_events() -> None:
    fields = [("x", "float"), ("b", "bytes"), ("at", {"type": "long", "logicalType": "timestamp-millis"})]
    plain = {"type": "record", "name": "row", "fields": [{"name": name, "type": kind} for name, kind in fields]}
    (found,) = avro_messages(avro_writer.file(plain, [{"x": float("nan"), "b": b"\0", "at": 5}]), "f", False)
    assert found.value == b'{"x":"NaN","b":"AA==","at":5}'
    out = BytesIO()
    row = {
        "at": datetime(2026, 3, 4, 5, tzinfo=UTC),
        "on": date(2026, 3, 4),
        "d": Decimal("1.50"),
        "b": b"\0",
        "l": [{"m": 1.5}],
    }
    pq.write_table(pa.Table.from_pylist([row]), out)
    (found,) = parquet_messages(out.getvalue(), "f")
    assert found.value == b'{"at":"2026-03-04T05:00:00+00:00","on":"2026-03-04","d":1.50,"b":"AA==","l":[{"m":1.5}]}'


FLOATS = {
    "type": "struct",
    "optional": False,
    "name": "a.Envelope",
    "fields": [{"field": "x", "type": "float", "optional": False}],
}


@given(st.floats(width=32))
def test_short_floats_have_the_digits_that_java_writes(value: float) -> None:
    (found,) = avro_messages(avro_file(FLOATS, [{"x": value}]), "f", False)
    read = json.loads(found.value or b"")["payload"]["x"]
    assert isinstance(read, str) == (not isfinite(value))
    assert (
        float(read) == value
        or isnan(value)
        or (len(repr(read)) <= len(repr(value)) and float32(read) == float32(value))
    )


def float32(value: float) -> bytes:
    return pack("f", value)


@pytest.mark.parametrize(
    "kind",
    [
        ["null", "string", "int"],
        "nowhere",
        {"type": "record", "name": "Envelope", "namespace": "a", "fields": [{"name": "again", "type": "Envelope"}]},
        7,
        {"type": "record", "name": "a.R", "fields": [{"name": "x"}]},
    ],
)
def test_schemas_that_connect_does_not_write_are_refused(kind: object) -> None:
    avro = {"type": "record", "name": "b.E", "connect.name": "b.E", "fields": [{"name": "x", "type": kind}]}
    with pytest.raises(DecodeError):
        form_of(avro)


GOOD = {
    "avro": avro_file(*next(recorded("postgres"))),
    "parquet": parquet_file(*next(recorded("postgres"))),
}


@pytest.mark.parametrize("form", GOOD)
@given(data=st.data())
@settings(max_examples=seeds.histories(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_readable_part_of_a_damaged_file_is_read(form: str, data: st.DataObject) -> None:
    whole = GOOD[form]
    at = data.draw(st.integers(0, len(whole)))
    damaged = whole[:at] + data.draw(st.binary(max_size=3)) + whole[at + data.draw(st.integers(0, 8)) :]
    read = parquet_messages(damaged, "f") if form == "parquet" else avro_messages(damaged, "f", False)
    assert {one.channel for one in read} == {"f"}, "and the damaged part is reported, too"
