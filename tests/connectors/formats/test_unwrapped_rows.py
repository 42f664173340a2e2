"""Rows after ``ExtractNewRecordState``, as its documentation describes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from airflow_cdc_provider.connectors.decoders.common.message import CopiedTable, DecoderSettings
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.quarantine import undecoded
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import Kind, TableSchema
from tests.connectors.formats.debezium_messages import CONNECT, PLACEHOLDER, S, field, key_schema, message, struct
from tests.connectors.formats.golden import column, decoder, records

PRICES = f"array<bytes {CONNECT}Decimal(scale=2)>"
TABLE = replace(S, columns=(*S.columns, column("prices", Kind.JSON, PRICES)))
ROW: Mapping[str, Any] = {"id": 2, "v": "x", "at": None, "prices": [None]}


def decoded(row: object, schema: TableSchema | None = TABLE, key: object = None, **options: Any) -> ChangeRecord:
    tables = None if schema is None else {schema.table: CopiedTable(TableRule(schema.table), schema)}
    made = decoder("debezium", DecoderSettings(1, tables, {"unwrapped": True, "topic_prefix": "srv", **options}))
    (record,) = records(made.decode(message(row, key or {"id": 2})))
    return record


def reason(record: ChangeRecord) -> str:
    content = undecoded(record)
    return "" if content is None else content.reason[:6]


@pytest.mark.parametrize("added", [{"__op": "c"}, {"__op": "u"}, {}])
def test_a_row_with_a_value_that_was_not_sent_must_exist(added: dict[str, Any]) -> None:
    """A changed key is a tombstone of the old one and a row of the new one, marked c."""
    record = decoded({**ROW, "v": PLACEHOLDER, **added})
    assert (record.op, record.after, record.after_complete) == (
        Operation.UPDATE,
        '{"id":2,"at":null,"prices":"[null]"}',
        False,
    )
    assert (record.key_before, record.key) == ("[2]", "[2]")


@pytest.mark.parametrize("added", [{"__op": "u"}, {}, {"__deleted": "false"}])
def test_a_null_that_may_not_have_been_sent_is_a_bad_record(added: dict[str, Any]) -> None:
    assert reason(decoded({**ROW, "prices": None, **added})) == "EVT020"
    assert decoded({**ROW, "prices": None, **added}, full_before=True).op == Operation.UPSERT


@pytest.mark.parametrize("op", ["c", "r"])
def test_a_null_of_a_new_row_is_null(op: str) -> None:
    record = decoded({**ROW, "prices": None, "__op": op})
    assert record.op in (Operation.UPSERT, Operation.READ)
    assert json.loads(record.after or "")["prices"] is None


def test_a_null_in_a_deleted_row_is_no_bad_record() -> None:
    assert decoded({**ROW, "prices": None, "__deleted": "true"}).op == Operation.DELETE


@pytest.mark.parametrize("op", ["c", "u"])
def test_a_row_that_lacks_a_column_of_the_copy_need_not_exist(op: str) -> None:
    record = decoded({"id": 2, "v": "x", "at": None, "__op": op})
    assert (record.op, record.after_complete) == (Operation.UPSERT, False)


NAMES = ["__v", "__version_2", "__Op", "__lsn2", "__", "__operation"]
ADDED = {
    "__deleted": "false",
    "__op": "u",
    "__table": "s",
    "__lsn": 5,
    "__db": "d",
    "__source_ts_ms": 1000,
    "__source_server_id": 1,
    "__ts_us": 1000,
    "__transaction_id": "7:8",
    "__total_order": 1,
    "__commit_scn": "7",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_column_is_not_taken_for_a_field_that_the_transform_added(name: str) -> None:
    columns = (*S.columns, column(name, Kind.TEXT, "string"))
    row = {"id": 2, "v": "x", "at": None, name: "y", **ADDED}
    record = decoded(row, replace(S, columns=columns))
    assert json.loads(record.after or "")[name] == "y"
    record = decoded(with_own_schema(row), None, key_schema({"id": 2}))
    assert json.loads(record.after or "") == {"id": 2, "v": "x", "at": None, name: "y"}
    assert json.loads(record.position).keys() == ADDED.keys() | {"channel", "offset"}
    assert reason(decoded(row, S)) == "EVT014", "a column that the copy does not have"


def with_own_schema(row: dict[str, Any]) -> dict[str, Any]:
    types = {True: "int64", False: "string"}
    fields = (field(name, types[isinstance(value, int)]) for name, value in row.items())
    return {"schema": struct(*fields), "payload": row}
