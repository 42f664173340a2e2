"""Names in Avro schemas: every type is resolved wherever it is used."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from fastavro.schema import expand_schema
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.decoders.common.avro_names import resolve_names
from airflow_cdc_provider.connectors.decoders.common.connect_avro import form_of
from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.sources.salesforce.event_schema import parse_event_schema

SPACES = ("", "a", "a.b", "c")
PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


@st.composite
def schemas(draw: st.DrawFn) -> Any:
    """Any schema that fastavro accepts: its rules decide which type a name refers to."""
    made: list[str] = []
    numbers = iter(range(1000))

    def named(kind: str, space: str, depth: int) -> Any:
        name = f"N{next(numbers)}"
        about: dict[str, Any] = {"type": kind, "kept": draw(st.booleans())}
        own = draw(st.sampled_from([None, *SPACES]))
        if own is not None and own and draw(st.booleans()):
            about["name"] = full = f"{own}.{name}"
        else:
            about["name"] = name
            about |= {} if own is None else {"namespace": own}
            inner = space if own is None else own
            full = f"{inner}.{name}" if inner else name
        made.append(full)
        if kind == "enum":
            return about | {"symbols": ["x", "y"]}
        if kind == "fixed":
            return about | {"size": 3}
        inside = full.rpartition(".")[0]
        fields = range(draw(st.integers(0, 4)))
        return about | {"fields": [{"name": f"f{one}", "type": any_type(inside, depth + 1)} for one in fields]}

    def any_type(space: str, depth: int) -> Any:
        again = [one for one in made if "." in one or not space]
        again += [one.rpartition(".")[2] for one in made if space and one.rpartition(".")[0] == space]
        kinds = [*PRIMITIVES, "logical", "fixed", "enum", *(["record", "array", "map", "union"] if depth < 4 else [])]
        kind = draw(st.sampled_from([*kinds, *(["again"] * 6 if again else [])]))
        match kind:
            case "again":
                return draw(st.sampled_from(again))
            case "logical":
                return {"type": "long", "logicalType": "timestamp-micros"}
            case "record" | "fixed" | "enum":
                return named(kind, space, depth)
            case "array":
                return {"type": "array", "items": any_type(space, depth + 1)}
            case "map":
                return {"type": "map", "values": any_type(space, depth + 1)}
            case "union":
                return ["null", any_type(space, depth + 1)]
        return kind

    return named("record", "", 0)


@given(schemas())
def test_names_resolve_to_the_types_that_fastavro_resolves(schema: Any) -> None:
    assert resolve_names(schema) == _plain(expand_schema(json.loads(json.dumps(schema))))


def _plain(schema: Any) -> Any:
    """fastavro removes the namespace, too, and adds hints of its own."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if isinstance(schema, dict):
        return {name: _plain(one) for name, one in schema.items() if not name.startswith("__")}
    return schema


def test_of_two_types_of_one_name_the_nearer_one_is_used() -> None:
    def pair(space: str, member: str) -> dict[str, Any]:
        return {"type": "record", "name": "Pair", "namespace": space, "fields": [{"name": member, "type": "int"}]}

    first, second = pair("far", "a"), pair("near", "b")
    fields = [{"name": name, "type": kind} for name, kind in (("x", first), ("y", second), ("z", "Pair"))]
    found = resolve_names({"type": "record", "name": "near.Row", "fields": fields})["fields"]
    assert [one["type"]["fields"][0]["name"] for one in found] == ["a", "b", "b"]


def test_java_writes_a_name_without_namespace_inside_of_one_with_a_namespace() -> None:
    inner = {"type": "record", "name": "Inner", "namespace": "", "fields": [{"name": "v", "type": "int"}]}
    fields = [{"name": "x", "type": inner}, {"name": "y", "type": ["null", "Inner"]}]
    found = resolve_names({"type": "record", "name": "Row", "namespace": "a", "fields": fields})["fields"]
    assert found[1]["type"] == ["null", found[0]["type"]]


@pytest.mark.parametrize("kind", ["nowhere", {"type": "nowhere"}, 7, {"items": "int"}, {"type": "array"}, None])
def test_an_undescribed_type_is_refused(kind: Any) -> None:
    with pytest.raises(DecodeError, match="EVT014"):
        resolve_names({"type": "record", "name": "R", "fields": [{"name": "x", "type": kind}]})


TIME = {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}
MOMENT = {"type": "record", "name": "Moment", "connect.name": "p.Moment", "fields": [{"name": "at", "type": TIME}]}


def test_connects_schemas_describe_types_that_are_used_again() -> None:
    fields = [
        {"name": "x", "type": ["null", MOMENT]},
        {"name": "y", "type": ["null", "Moment"]},
        {"name": "z", "type": {"type": "array", "items": "p.Moment"}},
    ]
    row = {"type": "record", "name": "Row", "namespace": "p", "connect.name": "p.Row", "fields": fields}
    x, y, z = form_of(row).schema["fields"]
    assert x | {"field": "y"} == y
    assert z["items"]["fields"] == x["fields"]


def test_an_event_of_salesforce_may_refer_to_a_type_of_its_header_and_to_two_of_one_name() -> None:
    def record(name: str, *members: str) -> dict[str, Any]:
        fields = [{"name": member, "type": ["null", "string"]} for member in members]
        return {"type": "record", "name": name, "fields": fields}

    header = {
        "type": "record",
        "name": "ChangeEventHeader",
        "fields": [{"name": "who", "type": record("h.Name", "first")}],
    }
    fields = [
        {"name": "ChangeEventHeader", "type": header},
        {"name": "Name", "type": ["null", record("b.Name", "first", "last")]},
        {"name": "By", "type": ["null", "h.Name"]},
        {"name": "Other", "type": ["null", "b.Name"]},
    ]
    schema = {"type": "record", "name": "XChangeEvent", "namespace": "com.sforce.eventbus", "fields": fields}
    value = {
        "ChangeEventHeader": {"who": {"first": "w"}},
        "Name": {"first": "a", "last": "b"},
        "By": {"first": "c"},
        "Other": {"first": "d", "last": "e"},
    }
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(schema), value)
    event = parse_event_schema("s", json.dumps(schema))
    head, at = event.header(written.getvalue())
    assert {"ChangeEventHeader": head, **event.body(written.getvalue(), at)} == value
    members = {field.name: [member.name for member in field.members] for field in event.fields[1:]}
    assert members == {"Name": ["first", "last"], "By": ["first"], "Other": ["first", "last"]}
