"""Every type in the stream and in a copy: both have the same value."""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from airflow_cdc_provider.connectors.source import Copy
from airflow_cdc_provider.connectors.sources.postgres.types import as_cell, converter
from airflow_cdc_provider.core.table.schema import Kind, TableSchema
from tests.connectors.conftest import Database, records

EXTRA_TYPES = (
    "CREATE TYPE mood AS ENUM ('sad', 'it''s \"ok\"', 'glücklich')",
    "CREATE TYPE pair AS (a int, b text)",
    "CREATE DOMAIN euro AS numeric(12,2) CHECK (VALUE >= 0)",
    "CREATE DOMAIN cents AS euro",
    "CREATE DOMAIN label AS varchar(20)",
)

# type, logical type, literals. NULL is tried for each.
CASES = [
    ("boolean", "boolean", ["true", "false"]),
    ("smallint", "int16", ["-32768", "32767", "0"]),
    ("integer", "int32", ["-2147483648", "2147483647"]),
    ("bigint", "int64", ["-9223372036854775808", "9223372036854775807"]),
    ("oid", "int64", ["0", "4294967295"]),
    ("real", "float32", ["0.1", "-0", "3.4028235e38", "1e-40", "'NaN'", "'Infinity'", "'-Infinity'", "16777216"]),
    ("double precision", "float64", ["0.1", "'-0'", "1e308", "5e-324", "1e15", "1e16", "'NaN'", "'-Infinity'", "1e-7"]),
    ("numeric(10,2)", "decimal(10,2)", ["1.5", "-99999999.99", "0"]),
    ("numeric(38,0)", "decimal(38,0)", ["99999999999999999999999999999999999999"]),
    ("numeric(38,38)", "decimal(38,38)", ["0.00000000000000000000000000000000000001"]),
    ("numeric(5)", "decimal(5,0)", ["12345"]),
    ("numeric", "text", ["1.500", "'NaN'", "'Infinity'", "'-Infinity'", "1e50", "0.0000000001"]),
    ("numeric(60,10)", "text", ["1.5"]),
    ("euro", "decimal(12,2)", ["12.30"]),
    ("cents", "decimal(12,2)", ["12.30"]),
    ("text", "text", ["''", "'NULL'", "'a\"b\\c'", "E'tab\\there\\nnew'", "'日本語 é 😀'", "E'\\u0001\\u001f\\u007f'"]),
    ("varchar(20)", "text", ["'x '", "'null'"]),
    ("label", "text", ["'a label'"]),
    ("char(6)", "text", ["'ab'", "''"]),
    ("bpchar", "text", ["'ab  '"]),
    ('"char"', "text", ["'x'", "''"]),
    ("name", "text", ["'relation'"]),
    ("mood", "text", ["'sad'", "'it''s \"ok\"'", "'glücklich'"]),
    ("json", "json", ['\'{"a":  1.50, "a": "é\\u00e9"}\'', "'null'"]),
    ("jsonb", "json", ['\'{"b": [1, 2.50], "a": "\\n"}\'', "'null'", "'\"x\"'"]),
    ("uuid", "uuid", ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"]),
    ("bytea", "bytes", ["'\\x'", "'\\x00ff10'"]),
    ("date", "date", ["'2024-02-29'", "'0001-01-01'", "'1582-10-10'", "'9999-12-31'"]),
    ("timestamp", "timestamp", ["'2024-02-29 12:34:56.7'", "'2024-01-01'", "'1582-10-10 01:02:03.000001'"]),
    ("timestamp", "timestamp", ["'0001-01-01'", "'9999-12-31 23:59:59.999999'", "'1900-01-01 00:00:00'"]),
    ("timestamp(0)", "timestamp", ["'2024-02-29 12:34:56.7'"]),
    ("timestamptz", "timestamptz", ["'2024-02-29 12:34:56.789012+05:30'", "'1883-11-18 12:03:57.5-08'"]),
    ("timestamptz", "timestamptz", ["'0001-01-01 00:00:00+00'", "'1969-12-31 23:59:59.999999+00'"]),
    ("time", "text", ["'12:34:56.7'", "'24:00:00'"]),
    ("timetz", "text", ["'12:34:56.7+05:30'"]),
    ("interval", "text", ["'1 year 2 mons -3 days 04:05:06.7'", "'-1 month'", "'0'"]),
    ("money", "text", ["'1234.5'", "'-0.01'"]),
    ("bit(5)", "text", ["B'10101'"]),
    ("bit varying", "text", ["B''", "B'101'"]),
    ("inet", "text", ["'10.0.0.1'", "'10.0.0.1/8'", "'::1'"]),
    ("cidr", "text", ["'10.0.0.0/8'"]),
    ("macaddr", "text", ["'08:00:2b:01:02:03'"]),
    ("point", "text", ["'(1.5,-2)'"]),
    ("box", "text", ["'(1,1),(0,0)'"]),
    ("polygon", "text", ["'((0,0),(1,1),(1,0))'"]),
    ("tsvector", "text", ["'a:1 b:2'"]),
    ("int4range", "text", ["'[1,5]'", "'empty'"]),
    ("tstzrange", "text", ["'[2024-01-01 00:00:00+02,infinity)'"]),
    ("int8multirange", "text", ["'{[1,2],[5,9)}'"]),
    ("integer[]", "text", ["'{1,NULL,3}'", "'{}'", "'{{1,2},{3,4}}'", "'[0:1]={7,8}'"]),
    ("text[]", "text", ["ARRAY['a,b', NULL, 'NULL', 'q\"q', 'é', '']"]),
    ("char(3)[]", "text", ["ARRAY['a', 'abc']::char(3)[]"]),
    ("inet[]", "text", ["'{10.0.0.1,10.0.0.0/8}'"]),
    ("timestamptz[]", "text", ["ARRAY['2024-01-01 00:00:00.5+02'::timestamptz]"]),
    ("bytea[]", "text", ["ARRAY['\\x00ff'::bytea]"]),
    ("mood[]", "text", ["ARRAY['sad']::mood[]"]),
    ("pair", "text", ["ROW(1, 'x,y')", "ROW(NULL, NULL)", "ROW(1, NULL)"]),
    ("regclass", "text", ["'pg_class'", "'public.thing'"]),
    ("pg_lsn", "text", ["'16/B374D848'"]),
    ("xid8", "text", ["'18446744073709551615'"]),
    ("jsonpath", "text", ["'$.a[*]'"]),
]

# The first major version that has them.
NEWER = [
    (15, ("numeric(3,-2)", "text", ["12345", "'NaN'"])),
    (15, ("numeric(2,5)", "text", ["0.00012"])),
    (17, ("interval", "text", ["'infinity'", "'-infinity'"])),
]


def cases(database: Database) -> list[tuple[str, str, list[str]]]:
    return CASES + [case for since, case in NEWER if since <= database.server.major]


@pytest.fixture
def all_types(database: Database) -> Database:
    """One column per case, one row per literal, a last row of NULLs."""
    database.sql("SET standard_conforming_strings TO on", *EXTRA_TYPES)
    columns = ", ".join(f"c{n} {native}" for n, (native, _, _) in enumerate(cases(database)))
    database.sql(f"CREATE TABLE thing (id int PRIMARY KEY, {columns})")
    database.publish("thing")
    return database


def fill(database: Database, first: int) -> None:
    all_cases = cases(database)
    height = max(len(literals) for _, _, literals in all_cases)
    for row in range(height + 1):
        chosen = [(n, literals[row]) for n, (_, _, literals) in enumerate(all_cases) if row < len(literals)]
        names = ", ".join(["id", *(f"c{n}" for n, _ in chosen)])
        values = ", ".join([str(first + row), *(literal for _, literal in chosen)])
        database.sql(f"INSERT INTO thing ({names}) VALUES ({values})")


def copied(database: Database, copy: Copy) -> dict[int, dict[str, Any]]:
    """Rows in the form of canonical JSON."""
    rows = database.copied(copy)
    return {
        row["id"]: {name: canonical_value(copy.schema, name, row[name]) for name in copy.schema.names} for row in rows
    }


def canonical_value(schema: TableSchema, name: str, value: Any) -> Any:
    if value is None:
        return None
    match schema.column(name).type.kind:
        case Kind.DATE:
            return value.isoformat()
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ as kind:
            return value.replace(tzinfo=None).isoformat() + ("Z" if kind is Kind.TIMESTAMPTZ else "")
        case Kind.DECIMAL:
            assert isinstance(value, Decimal)
            return f"{value:f}"
        case Kind.FLOAT32:
            return repr(float(str(np.float32(value))))
        case Kind.FLOAT64:
            return repr(float(value))
        case Kind.BYTES:
            return base64.b64encode(value).decode()
        case Kind.TEXT | Kind.JSON | Kind.UUID:
            assert isinstance(value, str)
            return value
        case _:
            return value


def streamed(schema: TableSchema, after: str) -> dict[str, Any]:
    values = json.loads(after)
    floats = {c.name for c in schema.columns if c.type.kind in (Kind.FLOAT32, Kind.FLOAT64)}
    return {n: repr(float(v)) if n in floats and v is not None else v for n, v in values.items()}


def test_each_value_is_the_same_in_stream_and_copy(all_types: Database) -> None:
    start = all_types.source.open_stream(["public.thing"])
    fill(all_types, 1)
    task = all_types.task("public.thing")
    by_stream = {
        json.loads(record.key or "")[0]: streamed(task.schema, record.after or "")
        for record in records(all_types.read(start, task))
    }
    with all_types.source.copy(task, 1, {}, 1) as copy:
        by_copy = copied(all_types, copy)
    assert len(by_copy) == 10
    for row, values in by_copy.items():
        for name, value in values.items():
            native = task.schema.column(name).native
            assert (native, by_stream[row][name]) == (native, value)


def test_each_type_has_its_logical_type(all_types: Database) -> None:
    schema = all_types.task("public.thing").schema
    expected = {f"c{n}": (native, logical) for n, (native, logical, _) in enumerate(cases(all_types))}
    assert {name: (native, str(schema.column(name).type)) for name, (native, _) in expected.items()} == expected


def test_texts_of_types_without_counterpart_do_not_depend_on_the_settings_of_the_server(all_types: Database) -> None:
    start = all_types.source.open_stream(["public.thing"])
    all_types.sql(
        f"ALTER DATABASE {all_types.name} SET datestyle TO 'SQL, DMY'",
        f"ALTER DATABASE {all_types.name} SET timezone TO 'Asia/Tokyo'",
        f"ALTER DATABASE {all_types.name} SET intervalstyle TO 'postgres_verbose'",
        f"ALTER DATABASE {all_types.name} SET extra_float_digits TO -5",
        f"ALTER DATABASE {all_types.name} SET bytea_output TO 'escape'",
    )
    fill(all_types, 1)
    (first, *_) = records(all_types.read(start, all_types.task("public.thing")))
    values = json.loads(first.after or "")
    by_type = {native: values[f"c{n}"] for n, (native, _, _) in reversed(list(enumerate(cases(all_types))))}
    assert by_type["timestamptz"] == "2024-02-29T07:04:56.789012Z"
    assert by_type["timestamp"] == "2024-02-29T12:34:56.700000"
    assert by_type["interval"] == "P1Y2M-3DT4H5M6.7S"
    assert by_type["money"] == "$1,234.50" or by_type["money"] == "1,234.50" or by_type["money"] == "1234.50"
    assert by_type["double precision"] == 0.1
    assert by_type["bytea"] == ""
    assert by_type["timestamptz[]"] == '{"2023-12-31 22:00:00.5+00"}'


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (Kind.TEXT, 'say "é"\n', '"say \\"é\\"\\n"'),
        (Kind.BOOLEAN, "t", "true"),
        (Kind.FLOAT64, "-0", "-0.0"),
        (Kind.FLOAT64, "NaN", '"NaN"'),
        (Kind.DECIMAL, "1.50", '"1.50"'),
        (Kind.BYTES, "\\x00ff", '"AP8="'),
        (Kind.TIMESTAMP, "2024-01-01 00:00:00.12", '"2024-01-01T00:00:00.120000"'),
        (Kind.TIMESTAMPTZ, "2024-01-01 00:00:00+00", '"2024-01-01T00:00:00Z"'),
    ],
)
def test_canonical_values(kind: Kind, text: str, expected: str) -> None:
    assert converter(kind)(as_cell(text)) == expected


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Kind.BOOLEAN, "maybe"),
        (Kind.INT32, "1.5"),
        (Kind.INT64, "²"),
        (Kind.FLOAT64, "1_0x0"),
        (Kind.DECIMAL, "ten"),
        (Kind.BYTES, "\\000"),
        (Kind.DATE, "tomorrow"),
        (Kind.TIMESTAMP, "2024-01-01"),
        (Kind.TIMESTAMPTZ, "2024-01-01 00:00:00+02"),
    ],
)
def test_a_text_that_is_no_value_of_its_type_is_refused(kind: Kind, text: str) -> None:
    with pytest.raises(ValueError):
        converter(kind)(as_cell(text))
