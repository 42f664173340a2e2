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
from tests.connectors.formats.debezium_messages import CONNECT, PLACEHOLDER, S, message
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
