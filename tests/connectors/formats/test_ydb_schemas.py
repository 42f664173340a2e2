"""Schema records of a YDB changefeed: what YDB's own reader refuses is refused, and one schema has one id."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.table.schema import Kind, TableSchema
from tests.connectors.formats.golden import Golden, column, decoder, records
from tests.connectors.formats.refusals import refused
from tests.connectors.formats.ydb_goldens import message

COLUMNS = {"id": {"type": "Int32"}, "k": {"type": "Utf8"}, "v": {"type": "Utf8"}}
TABLE = {"schemaVersion": 1, "primaryKeyColumnNames": ["id", "k"], "columns": COLUMNS}
EMPTY = DecoderSettings(1)


def schema_record(table: Any, ts: Any = (5, 6)) -> dict[str, Any]:
    return {"ts": ts, "tableChanges": [{"type": "ALTER", "table": table}]}


def reason(value: dict[str, Any]) -> str:
    return refused("ydb", message(value), EMPTY).reason


def schemas(*values: dict[str, Any], setting: DecoderSettings = EMPTY) -> list[tuple[list[str], list[ChangeRecord]]]:
    """Per message: the ids of the schemas that it announces, and its records."""
    feed = decoder("ydb", setting)
    items = [feed.decode(message(value)) for value in values]
    return [([one.schema_id for one in some if isinstance(one, TableSchema)], records(some)) for some in items]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schemaVersion": 0}, "without a schemaVersion from 1 on"),
        ({"schemaVersion": -1}, "without a schemaVersion from 1 on"),
        ({"schemaVersion": None}, "without a schemaVersion from 1 on"),
        ({"schemaVersion": True}, "without a schemaVersion from 1 on"),
        ({"schemaVersion": "1"}, "without a schemaVersion from 1 on"),
        ({"columns": {**COLUMNS, "w": {}}}, "a column without a name or a type"),
        ({"columns": {**COLUMNS, "w": {"type": ""}}}, "a column without a name or a type"),
        ({"columns": {**COLUMNS, "w": {"type": None}}}, "a column without a name or a type"),
        ({"columns": {**COLUMNS, "w": ""}}, "a column without a name or a type"),
        ({"columns": {**COLUMNS, "": {"type": "Utf8"}}}, "a column without a name or a type"),
        ({"columns": None}, "the columns"),
        ({"columns": {}}, "whose key columns are not among its columns"),
        ({"primaryKeyColumnNames": []}, "without key columns"),
        ({"primaryKeyColumnNames": None}, "without key columns"),
        ({"primaryKeyColumnNames": ["id", ""]}, "whose key columns are not among its columns"),
        ({"primaryKeyColumnNames": ["id", "w"]}, "whose key columns are not among its columns"),
        ({"primaryKeyColumnNames": ["id", "id"]}, "whose key columns are not among its columns"),
    ],
)
def test_a_schema_record_that_ydbs_reader_refuses_is_refused(change: dict[str, Any], words: str) -> None:
    text = reason(schema_record({**TABLE, **change}))
    assert text.startswith("EVT015 ") and words in text


@pytest.mark.parametrize("member", TABLE)
def test_a_schema_record_needs_each_member(member: str) -> None:
    less = {name: value for name, value in TABLE.items() if name != member}
    assert reason(schema_record(less)).startswith("EVT015 ")


@pytest.mark.parametrize("ts", [None, [0, 0], [], "5", 5, [5]])
def test_a_schema_record_without_a_time_is_refused(ts: Any) -> None:
    assert reason(schema_record(TABLE, ts)).startswith("EVT008 ")


def test_a_schema_record_without_ts_is_refused() -> None:
    value = schema_record(TABLE)
    del value["ts"]
    assert reason(value) == "EVT008 a schema record without a virtual timestamp"


@pytest.mark.parametrize("resolved", [[0, 0], None, [], "5"])
def test_a_barrier_without_a_time_is_refused(resolved: Any) -> None:
    assert reason({"resolved": resolved}).startswith("EVT008 ")


def test_the_order_of_columns_makes_no_other_schema() -> None:
    orders = [schema_record({**TABLE, "columns": dict(order)}) for order in permutations(COLUMNS.items())]
    first, *others = schemas(*orders)
    (schema_id,), (record,) = first
    assert record.op is Operation.SCHEMA and record.schema_id == schema_id
    assert all(announced == [] and found.schema_id == schema_id for announced, (found,) in others)


@pytest.mark.parametrize("key", [["id", "k"], ["k", "id"]])
def test_the_order_of_key_columns_makes_another_schema(key: list[str]) -> None:
    """A key of a record is an array."""
    ((_, (record,)),) = schemas(schema_record({**TABLE, "primaryKeyColumnNames": key}))
    assert f'"key":["{key[0]}","{key[1]}"]' in (record.after or "")


def test_a_declared_schema_keeps_its_id_whatever_the_order_of_its_columns() -> None:
    columns = (column("v", Kind.TEXT, "Utf8"), column("k", Kind.TEXT, "Utf8"), column("id", Kind.INT32, "Int32"))
    declared = TableSchema("shop/orders", columns, ("id", "k"))
    setting = Golden("", message(None), schema=declared).setting()
    row = {"key": [1, "a"], "update": {"v": "x"}, "ts": [7, 8]}
    (_, (schema,)), (_, (change,)) = schemas(schema_record(TABLE), row, setting=setting)
    assert schema.schema_id == change.schema_id == declared.schema_id


def test_another_type_of_a_column_makes_another_schema() -> None:
    wider = {**TABLE, "columns": {**COLUMNS, "id": {"type": "Int64"}}}
    (_, (one,)), (_, (other,)) = schemas(schema_record(TABLE), schema_record(wider))
    assert one.schema_id != other.schema_id
