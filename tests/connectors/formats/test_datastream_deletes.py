"""Deletes of Datastream, and the names of its sources."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Message
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.table.schema import TableSchema
from tests.connectors.formats import avro_writer as avro
from tests.connectors.formats.avro_writer import nullable
from tests.connectors.formats.datastream_messages import FORCE, MSSQL, ORACLE, PG, T, event, line, mysql
from tests.connectors.formats.golden import Golden, records
from tests.connectors.formats.refusals import decoded, refused

FOREVER = DecoderSettings(1)
OBJECT_ID = '{"$oid": "65f1a2b3c4d5e6f708192a3b"}'
RDBMS: list[tuple[TableSchema, str, dict[str, Any]]] = [
    (T, "mysql-cdc-binlog", mysql("DELETE", True)),
    (PG, "postgresql-cdc-wal", {"schema": "public", "table": "t", "lsn": "1/50", "primary_keys": ["id"]}),
    (MSSQL, "sqlserver-cdc", {"database": "db", "schema": "dbo", "table": "t", "lsn": "0000002a:000006f8:0002"}),
    (ORACLE, "oracle-cdc-logminer", {"schema": "ROOT", "table": "T", "scn": 7, "rs_id": "0x1.2.3", "ssn": 0}),
    (FORCE, "salesforce-cdc", {"object_name": "Account"}),
]


def setting(schema: TableSchema) -> DecoderSettings:
    return Golden("", Message(b""), schema=schema).setting()


def of_mongo(change_type: str, payload: Any = None, **more: Any) -> Message:
    metadata = {"database": "d", "collection": "c", "change_type": change_type, "primary_keys": ["_id"], **more}
    return line(event(metadata, "mongodb-cdc-changestream", sort_keys=[1700000000, 5], payload=payload))


def one(message: Message, setting: DecoderSettings) -> ChangeRecord:
    (record,) = records(decoded("datastream", message, setting))
    assert record.op is not Operation.UNREADABLE, record.after
    return record


@pytest.mark.parametrize("deleted", [{}, {"is_deleted": True}])
@pytest.mark.parametrize("data", [{}, {"data": None}])
@pytest.mark.parametrize(
    ("key", "as_key"), [("k", '["k"]'), (OBJECT_ID, '["{\\"$oid\\": \\"65f1a2b3c4d5e6f708192a3b\\"}"]')]
)
def test_a_delete_of_mongodb_needs_the_id_of_its_document_only(
    key: str, as_key: str, data: dict[str, Any], deleted: dict[str, Any]
) -> None:
    record = one(of_mongo("DELETE", {"_id": key, **data}, **deleted), FOREVER)
    assert (record.table, record.op, record.key_before, record.key) == ("d.c", Operation.DELETE, as_key, None)
    assert record.before_complete is bool(data)


def test_a_delete_and_the_document_that_it_deletes_have_the_same_key() -> None:
    key = one(of_mongo("INSERT", {"_id": OBJECT_ID, "data": {"n": 1}}), FOREVER).key
    assert one(of_mongo("DELETE", {"_id": OBJECT_ID}), FOREVER).key_before == key


@pytest.mark.parametrize("change_type", ["INSERT", "UPDATE", "READ"])
def test_a_document_without_its_data_is_refused(change_type: str) -> None:
    assert refused("datastream", of_mongo(change_type, {"_id": "k"}), FOREVER).reason == (
        "EVT015 the payload lacks columns of the table"
    )


@pytest.mark.parametrize("payload", [None, {}, {"data": {}}])
def test_a_delete_that_names_no_document_is_refused(payload: Any) -> None:
    """Nothing else in an event contains the id: ``primary_keys`` has the names of its columns only."""
    what = refused("datastream", of_mongo("DELETE", payload), FOREVER)
    assert what.reason.startswith("EVT005 ") and what.op == "delete"


def test_a_delete_without_a_payload_is_refused_like_one_whose_payload_is_null() -> None:
    absent = event({"database": "d", "collection": "c", "change_type": "DELETE"}, "cdc", sort_keys=[1, 5])
    del absent["payload"]
    null = {**absent, "payload": None}
    assert refused("datastream", line(absent), FOREVER).reason == refused("datastream", line(null), FOREVER).reason


@pytest.mark.parametrize("payload", ["k", ["k"], 1, True])
def test_a_delete_whose_payload_is_no_row_is_refused(payload: Any) -> None:
    assert refused("datastream", of_mongo("DELETE", payload), FOREVER).reason.startswith("EVT015 ")


@pytest.mark.parametrize(("schema", "method", "metadata"), RDBMS, ids=[method for _, method, _ in RDBMS])
def test_a_delete_of_a_table_needs_its_key_only(schema: TableSchema, method: str, metadata: dict[str, Any]) -> None:
    metadata = {**metadata, "change_type": "DELETE", "is_deleted": True}
    record = one(line(event(metadata, method, payload={"id": 1})), setting(schema))
    assert (record.op, record.key_before, record.before_complete) == (Operation.DELETE, "[1]", False)
    whole = one(line(event(metadata, method)), setting(schema))
    assert (whole.op, whole.key_before, whole.before_complete) == (Operation.DELETE, "[1]", True)


def test_a_delete_of_an_avro_file_whose_payload_is_null_is_refused_for_its_key() -> None:
    file = avro.file(avro.schema(avro.MYSQL, [nullable("id", "long")]), [event(mysql("DELETE", True), payload=None)])
    what = refused("datastream", Message(file, topic="f.avro", channel="f.avro"), setting(T))
    assert what.reason.startswith("EVT0")


@pytest.mark.parametrize("wal", ["postgresql-cdc-wal", "postgres-cdc-wal", "postgresql-cdc", "postgres_cdc_wal"])
def test_postgresql_has_two_names(wal: str) -> None:
    metadata = {"schema": "public", "table": "t", "lsn": "1/50", "change_type": "UPDATE", "primary_keys": ["id"]}
    record = one(line(event(metadata, wal)), setting(PG))
    assert (record.op, record.order_key) == (Operation.UPSERT, "0000000101000000010000005000000000" + "01")


@pytest.mark.parametrize("backfill", ["postgresql-backfill-fulldump", "postgres-backfill", "postgresql-backfill"])
def test_both_names_of_postgresql_have_backfills(backfill: str) -> None:
    metadata = {"schema": "public", "table": "t", "change_type": "INSERT", "is_deleted": False}
    record = one(line(event(metadata, backfill)), setting(PG))
    assert (record.op, record.snapshot) == (Operation.READ, "backfill")


@pytest.mark.parametrize(
    ("method", "words"),
    [("spanner-cdc", "read_method spanner-cdc is not supported"), ("two words", "read_method has no supported name")],
)
def test_a_source_that_is_not_supported_is_named_with_those_that_are(method: str, words: str) -> None:
    reason = refused("datastream", line(event(mysql("INSERT", False), method)), setting(T)).reason
    assert reason == f"EVT008 {words}; supported: mysql, oracle, postgresql, sqlserver, mongodb, salesforce"
