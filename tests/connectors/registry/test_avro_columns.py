"""Avro records that are read together give the texts that each gives by itself."""

from __future__ import annotations

import io
import itertools
import json
import struct
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.schema_registry.avro import AvroReader
from airflow_cdc_provider.core.log.registered_schemas import ReferencedSchema, RegisteredSchema
from tests.model import seeds

NUMBERS = itertools.count()
"""A type is defined once in a schema."""
LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
FLOATS = st.floats(width=32)
PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "long": LONGS,
    "float": FLOATS,
    "double": st.floats(),
    "bytes": st.binary(max_size=12),
    "string": TEXTS,
}


@st.composite
def types(draw: st.DrawFn, depth: int = 2) -> tuple[Any, st.SearchStrategy[Any]]:
    """An Avro type and its values."""
    number = next(NUMBERS)
    kind = draw(st.sampled_from(["primitive"] * 4 + ["enum", "fixed", "nullable", "record"]))
    if kind == "enum":
        symbols = draw(st.lists(st.from_regex(r"[A-Z][a-z]{0,5}", fullmatch=True), min_size=1, max_size=4, unique=True))
        return {"type": "enum", "name": f"E{number}", "symbols": symbols}, st.sampled_from(symbols)
    if kind == "fixed":
        size = draw(st.integers(1, 9))
        return {"type": "fixed", "name": f"F{number}", "size": size}, st.binary(min_size=size, max_size=size)
    if kind == "nullable" and depth:
        inner, values = draw(types(depth - 1).filter(lambda made: not isinstance(made[0], list)))
        return draw(st.sampled_from([["null", inner], [inner, "null"]])), st.none() | values
    if kind == "record" and depth:
        return draw(record(depth - 1))
    name = draw(st.sampled_from(list(PRIMITIVES)))
    return name, PRIMITIVES[name]


@st.composite
def record(draw: st.DrawFn, depth: int = 2) -> tuple[Any, st.SearchStrategy[Any]]:
    names = draw(st.lists(st.from_regex(r"[a-z_]{1,6}", fullmatch=True), min_size=1, max_size=5, unique=True))
    fields = {name: draw(types(depth)) for name in names}
    schema = {
        "type": "record",
        "name": f"R{next(NUMBERS)}",
        "fields": [{"name": name, "type": kind} for name, (kind, _) in fields.items()],
    }
    return schema, st.fixed_dictionaries({name: values for name, (_, values) in fields.items()})


def encoded(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(schema), value)
    return out.getvalue()


def alone(reader: AvroReader, content: bytes) -> bytes | str:
    try:
        return reader.read(content)
    except DecodeError as error:
        return str(error)


@given(st.data())
@settings(max_examples=seeds.histories(200), deadline=None)
def test_records_are_read_equally_together_and_alone(data: st.DataObject) -> None:
    """Also damaged ones among them, which are read together only if they are valid by chance."""
    schema, values = data.draw(record())
    reader = AvroReader(RegisteredSchema("AVRO", json.dumps(schema)))
    contents = [encoded(schema, data.draw(values)) for _ in range(data.draw(st.integers(1, 12)))]
    whole = len(contents)
    for content in contents[: data.draw(st.integers(0, 3))]:
        at = data.draw(st.integers(0, len(content)))
        piece = data.draw(st.sampled_from([b"", b"\x00", b"\xff" * 11, b"\x80", struct.pack("<d", 1e300)]))
        contents.append(content[:at] + piece + content[at + data.draw(st.integers(0, 2)) :])
    together = reader.read_many(contents)
    for text, content in zip(together, contents, strict=True):
        assert text is None or text == alone(reader, content)
    assert None not in together[:whole]


def test_arrays_and_maps_are_read_one_by_one() -> None:
    kinds = ({"type": "array", "items": "int"}, {"type": "map", "values": "int"})
    for kind in kinds:
        schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": kind}]}
        reader = AvroReader(RegisteredSchema("AVRO", json.dumps(schema)))
        value = {"a": [1, 2]} if kind["type"] == "array" else {"a": {"x": 1}}
        assert reader.read_many([encoded(schema, value)]) == [None]
        assert json.loads(reader.read(encoded(schema, value))) == value


def test_zeros_keep_their_sign() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "double"}]}
    reader = AvroReader(RegisteredSchema("AVRO", json.dumps(schema)))
    contents = [encoded(schema, {"a": zero}) for zero in (0.0, -0.0)]
    assert reader.read_many(contents) == [reader.read(content) for content in contents] == [b'{"a":0.0}', b'{"a":-0.0}']


def test_long_records_are_read_one_by_one_among_others() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}
    reader = AvroReader(RegisteredSchema("AVRO", json.dumps(schema)))
    contents = [encoded(schema, {"a": "x" * size}) for size in (1, 1 << 16, 2)]
    short, long, last = reader.read_many(contents)
    assert long is None and short == reader.read(contents[0]) and last == reader.read(contents[2])


def test_a_schema_may_use_types_of_referenced_schemas() -> None:
    money = {"type": "record", "name": "Money", "namespace": "shop", "fields": [{"name": "cents", "type": "long"}]}
    price = {"type": "record", "name": "Price", "namespace": "shop", "fields": [{"name": "net", "type": "Money"}]}
    row = {"type": "record", "name": "Row", "fields": [{"name": n, "type": "shop.Price"} for n in ("a", "b")]}
    references = (ReferencedSchema("shop.Money", json.dumps(money)), ReferencedSchema("shop.Price", json.dumps(price)))
    reader = AvroReader(RegisteredSchema("AVRO", json.dumps(row), references))
    payload = {name: {"net": {"cents": 5}} for name in ("a", "b")}
    content = b"\x0a\x0a"
    assert json.loads(reader.read(content)) == payload
    assert reader.read_many([content, content]) == [reader.read(content)] * 2


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"type": "record"}', '"nothing"', '["string", "int"]', '{"type": "record", "name": "R"}']
)
def test_a_schema_that_is_not_valid_or_not_supported_says_so(text: str) -> None:
    with pytest.raises(DecodeError, match="EVT014"):
        AvroReader(RegisteredSchema("AVRO", text))


@pytest.mark.parametrize(
    ("logical", "name", "parameters"),
    [
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            "org.apache.kafka.connect.data.Decimal",
            {"scale": "2", "connect.decimal.precision": "9"},
        ),
        ({"type": "int", "logicalType": "date"}, "org.apache.kafka.connect.data.Date", None),
        ({"type": "long", "logicalType": "timestamp-micros"}, "io.debezium.time.MicroTimestamp", None),
    ],
)
def test_logical_types_of_avro_stand_in_for_the_types_of_connect(logical: Any, name: str, parameters: Any) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": logical}]}
    reader = AvroReader(RegisteredSchema("AVRO", json.dumps(schema)))
    content = b"\x02\x05" if logical["type"] == "bytes" else b"\x0a"
    assert reader.read(content)
    (field,) = json.loads(reader.schema)["fields"]
    assert (field["name"], field.get("parameters")) == (name, parameters)
