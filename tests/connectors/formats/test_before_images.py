"""Before images of PostgreSQL with REPLICA IDENTITY DEFAULT: the columns beside the key are null, and those that
cannot be null have the empty value of their type.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_cdc_provider.connectors.decoders.common.message import CopiedTable, DecoderSettings, Message
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.quarantine import undecoded
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import Kind, TableSchema
from tests.connectors.formats.debezium_messages import envelope, message, pg
from tests.connectors.formats.decoded import records_of
from tests.connectors.formats.golden import column, decoder

TABLE = TableSchema(
    "inv.s",
    (
        column("id", Kind.INT32, "int32", nullable=False),
        column("name", Kind.TEXT, "string", nullable=False),
        column("qty", Kind.INT32, "int32", nullable=False),
        column("v", Kind.TEXT, "string"),
    ),
    ("id",),
)
BY_NAME = replace(TABLE, key=("name",))
INVENTED = {"name": "", "qty": 0, "v": None}
COPIES = 40


def decoded(sent: list[Message], together: bool, schema: TableSchema = TABLE, **options: Any) -> list[ChangeRecord]:
    made = decoder("debezium", DecoderSettings(1, {"inv.s": CopiedTable(TableRule("inv.s"), schema)}, options))
    return records_of(made, sent, together)


def deletes(**values: Any) -> list[Message]:
    rows = [{"id": key, **INVENTED, **values} for key in range(COPIES)]
    return [message(envelope("d", row, None, pg()), {"id": row["id"]}) for row in rows]


@pytest.mark.parametrize("together", [False, True])
def test_of_a_deleted_row_only_the_key_is_known(together: bool) -> None:
    for record in decoded(deletes(), together):
        assert record.before == f'{{"id":{(record.key_before or "")[1:-1]}}}'
        assert not record.before_complete


@pytest.mark.parametrize("together", [False, True])
def test_of_a_row_before_an_update_only_the_key_is_known(together: bool) -> None:
    rows = [{"id": key, "name": "x", "qty": 7, "v": "y"} for key in range(COPIES)]
    sent = [message(envelope("u", {**row, **INVENTED}, row, pg()), {"id": row["id"]}) for row in rows]
    for record in decoded(sent, together):
        assert record.before == f'{{"id":{(record.key or "")[1:-1]}}}'
        assert record.after_complete


@pytest.mark.parametrize("together", [False, True])
def test_with_replica_identity_full_an_empty_value_is_one(together: bool) -> None:
    for record in decoded(deletes(), together, full_before=True):
        assert record.before_complete
        assert '"name":"","qty":0,"v":null' in (record.before or "")


@pytest.mark.parametrize("op", ["u", "d"])
def test_a_change_whose_declared_key_is_not_known_is_a_bad_record_without_key(op: str) -> None:
    row = {"id": 1, "name": "x", "qty": 7, "v": "y"}
    change = envelope(op, {**row, **INVENTED}, row if op == "u" else None, pg())
    (record,) = decoded([message(change, {"id": 1})], False, BY_NAME)
    content = undecoded(record)
    assert content is not None and content.reason.startswith("EVT005") and "full_before" in content.reason
    assert "name" not in content.known or op == "u"
    assert (record.key, record.key_before) == (None, None) or op == "u"
    (record,) = decoded([message(envelope("d", row, None, pg()), {"id": 1})], False, BY_NAME, full_before=True)
    assert (record.op, record.key_before) == (Operation.DELETE, '["x"]')


def test_without_a_key_in_the_message_the_replica_identity_is_full() -> None:
    row = {"id": 1, "name": "x", "qty": 7, "v": None}
    (record,) = decoded([message(envelope("d", row, None, pg()))], False, BY_NAME)
    assert (record.op, record.key_before) == (Operation.DELETE, '["x"]')
