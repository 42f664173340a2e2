"""The order of Debezium's events of Oracle, whose source blocks do not all contain a commit SCN and a record set."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Message
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.table.schema import Kind, TableSchema
from tests.connectors.formats.debezium_messages import envelope, field, key_schema, message, with_schema
from tests.connectors.formats.golden import Golden, column, records
from tests.connectors.formats.refusals import decoded, refused
from tests.connectors.formats.test_batch_decoding import decode_both_ways

T = TableSchema("ROOT.T", (column("ID", Kind.INT32),), ("ID",))
SETTING: DecoderSettings = Golden("", message(None), schema=T, options={"full_before": True}).setting()


def source(scn: int | None, commit_scn: int | None, **more: Any) -> dict[str, Any]:
    """Debezium writes SCNs as text."""
    scns = {"scn": scn, "commit_scn": commit_scn}
    of_table = {"connector": "oracle", "ts_ms": 1, "snapshot": "false", "db": "ORCL", "schema": "ROOT", "table": "T"}
    more = {"rs_id": " 0x0073c9.000a4e4c.01d0 ", "ssn": 1, "redo_thread": 1, **more}
    return {**of_table, **{name: None if value is None else str(value) for name, value in scns.items()}, **more}


def of_row(block: dict[str, Any], op: str = "c") -> Message:
    value = with_schema(envelope(op, None, {"ID": 1}, block, None), field("ID", "int32"))
    return message(value, key_schema({"ID": 1}), "o.ROOT.T")


def of_truncate(block: dict[str, Any]) -> Message:
    return message(envelope("t", None, None, block, None), topic="o.ROOT.T")


def of_ddl(block: dict[str, Any]) -> Message:
    table = {
        "primaryKeyColumnNames": ["ID"],
        "columns": [{"name": "ID", "jdbcType": 2, "typeName": "NUMBER", "typeExpression": "NUMBER", "position": 1}],
    }
    change = {"type": "ALTER", "id": '"ORCL"."ROOT"."T"', "table": table}
    statement = {"databaseName": "ORCL", "schemaName": "ROOT", "ddl": "ALTER TABLE T ADD (V NUMBER)"}
    return message({"source": block, "ts_ms": 1, **statement, "tableChanges": [change]}, topic="o")


def one(sent: Message) -> ChangeRecord:
    (record,) = records(decoded("debezium", sent, SETTING))
    assert record.op is not Operation.UNREADABLE, record.after
    return record


STATEMENTS = pytest.mark.parametrize("statement", [of_truncate, of_ddl])


@STATEMENTS
@pytest.mark.parametrize("stale", [None, 90])
def test_a_statement_is_ordered_by_its_own_scn(statement: Any, stale: int | None) -> None:
    """Before the first commit that a connector sees after its start, the source block has no commit SCN; later it has
    that of the transaction before."""
    before = [one(of_row(source(80, commit))).order_key for commit in (99, 100)]
    after = one(of_row(source(101, 101))).order_key
    assert max(before) < one(statement(source(100, stale))).order_key < after


@STATEMENTS
def test_a_statement_is_ordered_after_the_rows_of_a_snapshot(statement: Any) -> None:
    copied = one(of_row(source(100, None, snapshot="true"), "r")).order_key
    assert copied < one(statement(source(101, None))).order_key


@pytest.mark.parametrize("block", [source(100, None), source(100, None, scn_idx=3, redo_thread=1)])
def test_a_row_without_a_commit_scn_is_refused_in_words_that_name_openlogreplicator(block: dict[str, Any]) -> None:
    """Its SCN is that of a checkpoint: rows of several transactions have the same, and a later one may have a lower."""
    reason = refused("debezium", of_row(block), SETTING).reason
    assert reason.startswith("EVT008 the source block has no commit_scn, as events of OpenLogReplicator")
    assert "logminer" in reason


@pytest.mark.parametrize("rs_id", [None, ""])
@pytest.mark.parametrize("adapter", [{}, {"lcr_position": "00000000000000640000000100000001"}])
def test_a_row_without_a_record_set_is_refused_in_words_that_name_xstream(rs_id: Any, adapter: dict[str, Any]) -> None:
    """Oracle gives one SCN to thousands of changes: an update and a delete of a row in one transaction may share it."""
    reason = refused("debezium", of_row(source(100, 110, rs_id=rs_id, **adapter)), SETTING).reason
    assert reason.startswith("EVT008 the source block has no rs_id, as events of XStream") and "logminer" in reason


def test_a_copied_row_needs_its_scn_only() -> None:
    for marker in ("true", "incremental"):
        assert one(of_row(source(100, None, snapshot=marker, rs_id=None), "r")).snapshot != "none"


@STATEMENTS
def test_a_statement_of_a_snapshot_is_ordered_like_its_rows(statement: Any) -> None:
    position = one(statement(source(100, None, snapshot="true", rs_id=None))).order_key
    assert position < one(of_row(source(101, 101))).order_key


@pytest.mark.parametrize("scn", [None, "x", -1, "100,200"])
@STATEMENTS
def test_a_statement_without_an_scn_is_refused(statement: Any, scn: Any) -> None:
    sent = statement({**source(None, 90), "scn": scn})
    assert refused("debezium", sent, SETTING).reason.startswith("EVT008 ")


@pytest.mark.parametrize(
    "odd", [source(100, None), source(100, 110, rs_id=None), source(100, 110, rs_id="x"), source(None, 110)]
)
def test_a_row_without_an_order_among_others_is_decoded_equally_in_a_batch(odd: dict[str, Any]) -> None:
    rows = [of_row(source(80, 99, ssn=number))._replace(offset=number) for number in range(60)]
    for messages in ([*rows[:30], of_row(odd)._replace(offset=30), *rows[31:]], [of_row(odd)] * 60):
        together, alone, _ = decode_both_ways("debezium", SETTING, messages, 60)
        assert together == alone
