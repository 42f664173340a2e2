"""Types from describe, and one value from all sources of values: bulk CSV, REST JSON, Avro."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from math import ulp
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.sources.salesforce.columns import cast_columns
from airflow_cdc_provider.connectors.sources.salesforce.errors import DecodeError
from airflow_cdc_provider.connectors.sources.salesforce.event_schema import entity_of, parse_event_schema
from airflow_cdc_provider.connectors.sources.salesforce.ids import full_id, is_id, is_wildcard
from airflow_cdc_provider.connectors.sources.salesforce.query import checked_name, select
from airflow_cdc_provider.connectors.sources.salesforce.types import logical_type, parse_description
from airflow_cdc_provider.connectors.sources.salesforce.values import WrongValue, from_avro, from_json, from_text
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from tests.connectors import salesforce_events as org
from tests.connectors.salesforce_events import NOON_MS, described_field, number

MS_PER_DAY = 86_400_000
HUGE = "x" * 131_072
LINES = 'a "quoted"\r\n,line\nand\ttab'

# described as; CSV cell; REST JSON; meaning, Avro type and value in an event; canonical
SAME_VALUE: dict[str, tuple[dict[str, Any], str, str, tuple[str, str, Any], str]] = {
    "text": (described_field("f"), "Grüße", '"Grüße"', ("Text", "string", "Grüße"), '"Grüße"'),
    "NA": (described_field("f"), "NA", '"NA"', ("Text", "string", "NA"), '"NA"'),
    "the word null": (described_field("f"), "null", '"null"', ("Text", "string", "null"), '"null"'),
    "blanks": (described_field("f"), "  ", '"  "', ("Text", "string", "  "), '"  "'),
    "lines": (
        described_field("f", "textarea"),
        LINES,
        json.dumps(LINES),
        ("StringPlusClob", "string", LINES),
        json.dumps(LINES),
    ),
    "huge": (described_field("f", "textarea"), HUGE, f'"{HUGE}"', ("StringPlusClob", "string", HUGE), f'"{HUGE}"'),
    "nul": (described_field("f"), "a\0b", r'"a\u0000b"', ("Text", "string", "a\0b"), r'"a\u0000b"'),
    "several picked": (described_field("f", "multipicklist"), "a;b", '"a;b"', ("MultiEnum", "string", "a;b"), '"a;b"'),
    "id": (described_field("f", "reference"), org.ADA, f'"{org.ADA}"', ("EntityId", "string", org.ADA), f'"{org.ADA}"'),
    "true": (described_field("f", "boolean"), "true", "true", ("Boolean", "boolean", True), "true"),
    "false": (described_field("f", "boolean"), "false", "false", ("Boolean", "boolean", False), "false"),
    "integer": (described_field("f", "int"), "-7", "-7", ("Integer", "int", -7), "-7"),
    "integer as a float": (described_field("f", "int"), "7.0", "7.0", ("Integer", "int", 7), "7"),
    "amount": (number("f", "currency", 18, 2), "0.1", "0.1", ("Currency", "double", 0.1), '"0.10"'),
    "half a cent": (number("f", "currency", 18, 2), "1.005", "1.005", ("Currency", "double", 1.005), '"1.01"'),
    "less than nothing": (number("f", "currency", 18, 2), "-0.004", "-0.004", ("Currency", "double", -0.004), '"0.00"'),
    "large": (
        number("f", "double", 18, 0),
        "1.2345678E8",
        "1.2345678E8",
        ("Double", "double", 123456780.0),
        '"123456780"',
    ),
    "percent": (number("f", "percent", 5, 3), "12.5", "12.5", ("Percent", "double", 12.5), '"12.500"'),
    "latitude": (
        number("f", "double", 18, 15),
        "37.793819",
        "37.793819",
        ("", "double", 37.793819),
        '"37.793819000000000"',
    ),
    "number of unknown digits": (number("f", "double", 0, 0), "0.1", "0.1", ("Double", "double", 0.1), "0.1"),
    "formula": (
        number("f", "double", 18, 2, calculated=True),
        "1e10",
        "1e10",
        ("Double", "double", 1e10),
        '"10000000000.00"',
    ),
    "time": (
        described_field("f", "datetime"),
        "2026-03-01T12:00:00.000Z",
        '"2026-03-01T12:00:00.000+0000"',
        ("DateTime", "long", NOON_MS),
        '"2026-03-01T12:00:00Z"',
    ),
    "time with milliseconds": (
        described_field("f", "datetime"),
        "2026-03-01T12:00:00.120Z",
        '"2026-03-01T14:00:00.120+0200"',
        ("DateTime", "long", NOON_MS + 120),
        '"2026-03-01T12:00:00.120000Z"',
    ),
    "time before 1970": (
        described_field("f", "datetime"),
        "1899-12-31T23:59:59.000Z",
        '"1899-12-31T23:59:59.000+0000"',
        ("DateTime", "long", -2_208_988_801_000),
        '"1899-12-31T23:59:59Z"',
    ),
    "date": (
        described_field("f", "date"),
        "2026-03-01",
        '"2026-03-01"',
        ("DateOnly", "long", 20_513 * MS_PER_DAY),
        '"2026-03-01"',
    ),
    "date before 1970": (
        described_field("f", "date"),
        "1815-12-10",
        '"1815-12-10"',
        ("DateOnly", "long", -56_270 * MS_PER_DAY),
        '"1815-12-10"',
    ),
    "time of day": (
        described_field("f", "time"),
        "09:30:00.000Z",
        '"09:30:00.000Z"',
        ("TimeOnly", "long", 34_200_000),
        '"09:30:00.000Z"',
    ),
    "nothing": (
        described_field("f", "currency", precision=18, scale=2),
        "",
        "null",
        ("Currency", "double", None),
        "null",
    ),
    "empty text": (described_field("f"), "", '""', ("Text", "string", ""), "null"),
}


@pytest.mark.parametrize(("field", "cell", "rest", "avro", "canonical"), SAME_VALUE.values(), ids=SAME_VALUE)
def test_a_value_is_the_same_in_csv_json_and_avro(
    field: dict[str, Any], cell: str, rest: str, avro: tuple[str, str, Any], canonical: str
) -> None:
    kind = logical_type(field)
    meaning, avro_type, value = avro
    of_event = from_avro(kind, meaning, avro_type)
    assert of_event is not None
    assert from_text(kind)(cell) == canonical
    assert from_json(kind)(json.loads(rest, parse_float=Decimal)) == canonical
    assert of_event(through_avro(avro_type, value)) == canonical
    assert through_arrow(kind, cell) == json.loads(canonical)


def through_avro(kind: str, value: Any) -> Any:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, ["null", kind], value)
    stream.seek(0)
    return fastavro.schemaless_reader(stream, ["null", kind], None)


def through_arrow(kind: LogicalType, cell: str) -> Any:
    """The value of a copied row, in the form of canonical JSON."""
    schema = TableSchema("X", (Column("f", kind),))
    (value,) = cast_columns(pa.table({"f": pa.array([cell or None], pa.string())}), schema)["f"].to_pylist()
    if isinstance(value, datetime):
        return f"{value.replace(tzinfo=None).isoformat()}Z"
    if isinstance(value, date):
        return value.isoformat()
    return f"{value:f}" if isinstance(value, Decimal) else value


def test_case_44_a_date_is_midnight_in_utc_whatever_the_time_zone_of_the_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import time

    convert = from_avro(LogicalType(Kind.DATE), "DateOnly", "long")
    assert convert is not None
    for zone in ("Pacific/Auckland", "America/Los_Angeles", "UTC"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        assert convert(20_513 * MS_PER_DAY) == '"2026-03-01"'
    monkeypatch.undo()
    time.tzset()


def test_case_45_a_number_is_a_decimal_of_the_described_scale() -> None:
    assert logical_type(number("f", "currency", 16, 4)) == LogicalType(Kind.DECIMAL, 16, 4)
    assert logical_type(number("f", "percent", 5, 0)) == LogicalType(Kind.DECIMAL, 5, 0)


@given(st.integers(-(10**18) + 1, 10**18 - 1), st.integers(0, 15))
@example(9007199254740993, 4)
@example(8999999999990003, 4)
@example(2**53 + 1, 0)
def test_case_45_no_float_in_between_changes_a_digit(unscaled: int, scale: int) -> None:
    """Decimals that become the same double as their neighbours are fetched."""
    kind, value = LogicalType(Kind.DECIMAL, 18, scale), Decimal(unscaled).scaleb(-scale)
    of_event = from_avro(kind, "Currency", "double")
    assert of_event is not None
    from_double = of_event(float(value))
    assert from_double is not None or abs(unscaled) > 2**52, "only where digits would be lost"
    if from_double is not None:
        assert from_double == from_text(kind)(f"{value:f}") == f'"{value if value else abs(value):.{scale}f}"'


def test_case_45_a_geolocation_is_a_double_at_the_source_too() -> None:
    convert = from_avro(LogicalType(Kind.DECIMAL, 18, 15), "", "double")
    assert convert is not None and convert(37.793819) == '"37.793819000000000"'


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 9))
def test_case_45_any_float_is_the_decimal_of_its_shortest_text(value: float, scale: int) -> None:
    kind = LogicalType(Kind.DECIMAL, 18, scale)
    of_event = from_avro(kind, "Double", "double")
    assert of_event is not None
    from_double, expected = or_wrong(of_event, value), or_wrong(from_text(kind), repr(value))
    assert from_double == expected or (from_double is None and ulp(value) > 10.0**-scale)


def or_wrong(convert: Callable[[Any], str | None], value: Any) -> str | None:
    try:
        return convert(value)
    except WrongValue:
        return "wrong"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (LogicalType(Kind.BOOLEAN), "yes"),
        (LogicalType(Kind.INT32), "1.5"),
        (LogicalType(Kind.DECIMAL, 4, 2), "100"),
        (LogicalType(Kind.DECIMAL, 4, 2), "NaN"),
        (LogicalType(Kind.FLOAT64), "much"),
        (LogicalType(Kind.DATE), "yesterday"),
        (LogicalType(Kind.TIMESTAMPTZ), "2026-03-01T12:00:00"),
    ],
)
def test_a_value_that_is_none_of_its_type_is_refused_in_csv_json_and_avro(kind: LogicalType, value: str) -> None:
    for convert in (from_text(kind), from_json(kind)):
        with pytest.raises(WrongValue) as raised:
            convert(value)
        assert value not in str(raised.value)
    with pytest.raises(DecodeError, match="column f"):
        through_arrow(kind, value)


@pytest.mark.parametrize(
    ("meaning", "avro", "kind"),
    [
        ("DateOnly", "long", Kind.TIMESTAMPTZ),
        ("DateTime", "long", Kind.INT64),
        ("TimeOnly", "long", Kind.DATE),
        ("Text", "string", Kind.DECIMAL),
        ("Boolean", "boolean", Kind.TEXT),
    ],
)
def test_case_52_a_value_written_under_another_type_has_no_conversion(meaning: str, avro: str, kind: Kind) -> None:
    assert from_avro(LogicalType(kind, 18, 2), meaning, avro) is None


def test_case_40_compound_and_binary_fields_are_no_columns_and_formulas_are_marked() -> None:
    account, invoice = org.described_as("Account"), org.described_as("Invoice__c")
    assert not {"BillingAddress", "ShippingAddress", "Place__c"} & set(account.schema.names)
    assert account.compounds["BillingCity"] == "BillingAddress"
    assert {"BillingCity", "Place__Latitude__s", "FirstName"} <= set(account.schema.names)
    assert "Scan__c" not in invoice.schema.names
    assert invoice.snapshot_only == {"Total__c"}
    assert invoice.schema.column("Total__c").native == "double, calculated"
    assert account.snapshot_only == {"SystemModstamp"}


def test_a_name_composed_of_its_parts_is_no_formula() -> None:
    contact = org.DESCRIBES["Contact"]
    fields = [{**field, "calculated": field["name"] == "Name"} for field in contact["fields"]]
    assert parse_description({**contact, "fields": fields}).snapshot_only == frozenset()


def test_case_46_system_changes_are_found_by_the_system_modstamp_first() -> None:
    fields = [described_field(one, "datetime") for one in ("CreatedDate", "LastModifiedDate", "SystemModstamp")]
    assert parse_description({"name": "X", "fields": fields}).modstamp == "SystemModstamp"
    assert parse_description({"name": "X", "fields": fields[:2]}).modstamp == "LastModifiedDate"


def test_case_57_how_an_object_can_be_queried_and_its_changes_found() -> None:
    history = {"name": "AccountHistory", "queryable": True, "fields": [described_field("CreatedDate", "datetime")]}
    assert parse_description(history).modstamp == "CreatedDate"
    assert parse_description({**history, "fields": []}).modstamp == ""
    assert not parse_description({**history, "queryable": False}).queryable


def test_a_table_has_the_id_as_key_and_the_columns_in_the_order_of_describe() -> None:
    schema = org.described_as("Contact").schema
    assert (schema.key, schema.names) == (("Id",), ("Id", "FirstName", "LastName", "Name", "Email"))
    assert not schema.column("Id").nullable and schema.column("Email").nullable


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("0015000000VALDt", "0015000000VALDtAAP"),
        ("001000000000001", "001000000000001AAA"),
        ("a0B1N00000AbCdE", "a0B1N00000AbCdEUAV"),
    ],
)
def test_case_55_an_id_of_15_characters_gets_a_suffix_of_three(short: str, full: str) -> None:
    assert full_id(short) == full_id(full) == full


def test_invalid_ids_are_refused() -> None:
    for text in ("", "001*", "001", "0" * 16, "0" * 18 + "x", "00100000000000!"):
        assert not is_id(text)
        with pytest.raises(ValueError, match="no"):
            full_id(text)
    assert is_wildcard("001*") and not is_wildcard(org.ADA)


def test_case_39_a_query_of_a_copy_is_unordered_and_without_limit() -> None:
    soql = select(org.described_as("Invoice__c").schema)
    assert soql == "SELECT Id, Name, Amount__c, Total__c FROM Invoice__c"


@pytest.mark.parametrize("text", ["", "a b", "Id FROM User --", "Name'", "1st", "Näme"])
def test_only_names_get_into_a_query(text: str) -> None:
    with pytest.raises(ValueError, match="no name"):
        checked_name(text)


@pytest.mark.parametrize(
    ("record", "entity"),
    [
        ("AccountChangeEvent", "Account"),
        ("com.sforce.eventbus.AccountChangeEvent", "Account"),
        ("Invoice__ChangeEvent", "Invoice__c"),
        ("acme__Invoice__ChangeEvent", "acme__Invoice__c"),
    ],
)
def test_an_event_contains_the_name_of_its_object(record: str, entity: str) -> None:
    assert entity_of(record) == entity


LEAVES = {
    "string": st.text(max_size=200),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False),
    "float": st.floats(allow_nan=False, width=32),
}
KINDS: list[tuple[Any, st.SearchStrategy[Any]]] = list(LEAVES.items())
KINDS.append((org.TEXTS, st.lists(st.text(max_size=5), max_size=4)))
PAIR = {
    "type": "record",
    "name": "Pair",
    "fields": [{"name": "a", "type": ["null", "string"]}, {"name": "b", "type": "int"}],
}
KINDS.append((PAIR, st.fixed_dictionaries({"a": st.none() | st.text(max_size=3), "b": LEAVES["int"]})))
SHAPES: list[Callable[[Any], Any]] = [lambda k: ["null", k], lambda k: k, lambda k: [k, "null"]]


@given(st.data())
def test_the_fields_of_any_event_are_read_as_fastavro_reads_them(data: st.DataObject) -> None:
    fields, values, named = [], {}, False
    for index in range(data.draw(st.integers(0, 12))):
        kind, strategy = data.draw(st.sampled_from(KINDS))
        if kind is PAIR:
            kind, named = ("com.sforce.eventbus.Pair" if named else PAIR), True
        shape = data.draw(st.sampled_from(SHAPES))
        fields.append({"name": f"f{index}", "type": shape(kind)})
        values[f"f{index}"] = data.draw(strategy if shape is SHAPES[1] else st.none() | strategy)
    schema = org.avro_schema("XChangeEvent", fields)
    stream = io.BytesIO()
    header = dict.fromkeys(("entityName", "changeOrigin", "transactionKey", "commitUser"), "x")
    lists = {name: ["a"] for name in ("recordIds", "nulledFields", "diffFields", "changedFields")}
    numbers = dict.fromkeys(("sequenceNumber", "commitTimestamp", "commitNumber"), 2**30)
    head = {**header, **lists, **numbers, "changeType": "UPDATE"}
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), {"ChangeEventHeader": head, **values})
    stream.seek(0)
    theirs = fastavro.schemaless_reader(stream, fastavro.parse_schema(schema), None)
    assert isinstance(theirs, dict)
    event = parse_event_schema("s", json.dumps(schema))
    header, at = event.header(stream.getvalue())
    assert header == theirs.pop("ChangeEventHeader")
    assert event.body(stream.getvalue(), at) == {name: value for name, value in theirs.items() if value is not None}
