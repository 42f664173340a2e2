"""Datastream's events and their meaning, after its documentation and after recorded files."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from airflow_cdc_provider.connectors.decoders.common.message import Message
from tests.connectors.formats import avro_writer as avro
from tests.connectors.formats.datastream_messages import (
    AGAIN,
    AGAIN_AFTER,
    AGAIN_ROW,
    AT_MS,
    FORCE,
    MSSQL,
    OLD,
    OLD_ORACLE,
    ORACLE,
    OUT_OF_ORDER,
    PG,
    PLAIN,
    POSITION,
    PREFIX,
    TYPED,
    TYPED_AFTER,
    TYPED_ROW,
    T,
    event,
    line,
    mysql,
)
from tests.connectors.formats.debezium_control_goldens import NUMBERS, OLD_NUMBERS
from tests.connectors.formats.golden import Golden, key_of

GOLDENS = [
    Golden(
        "MySQL: the old half of a key change",
        line(event(mysql("UPDATE-DELETE", True))),
        (
            {
                "table": "shop.t",
                "op": "delete",
                "order_key": key_of(f"{POSITION} 00000000 00"),
                "key_before": "[1]",
                "key": None,
                "before": '{"id":1,"v":"x"}',
                "before_complete": True,
                "phase": 0,
                "link_id": key_of(POSITION),
                "event_id": f"{PREFIX}00000000",
                "snapshot": "none",
            },
        ),
        T,
    ),
    Golden(
        "MySQL: the new half, one second late",
        line(event(mysql("UPDATE-INSERT", False), ordinal="00000001", source_timestamp=AT_MS + 877)),
        (
            {
                "op": "upsert",
                "order_key": key_of(f"{POSITION} 00000001 01"),
                "key": "[1]",
                "after": '{"id":1,"v":"x"}',
                "after_complete": True,
                "phase": 1,
                "link_id": key_of(POSITION),
            },
        ),
        T,
    ),
    Golden(
        "the third row of a statement: its ordinal is binary",
        line(event(mysql("INSERT", False), ordinal="00000011")),
        ({"op": "insert", "order_key": key_of(f"{POSITION} 00000003 01"), "phase": None, "link_id": None},),
        T,
    ),
    Golden(
        "a row of a backfill is below every change",
        line(event(mysql("INSERT", False, log_file="", log_position=0), "mysql-backfill-fulldump")),
        (
            {
                "op": "read",
                "order_key": key_of("00 0000018bcfe5687b 0000000000000000 00000000 01"),
                "snapshot": "backfill",
                "after_complete": True,
            },
        ),
        T,
    ),
    Golden(
        "if the type of change is ambiguous, is_deleted decides",
        line(event(mysql("UPDATE", True))),
        ({"op": "delete", "phase": None},),
        T,
    ),
    Golden(
        "if is_deleted is missing, the type of change decides",
        line(event(mysql("DELETE", None))),
        ({"op": "delete", "key_before": "[1]"},),
        T,
    ),
    Golden(
        "times as text, with a blank or with a T",
        line(
            event(
                mysql("UPDATE", False),
                source_timestamp="2021-12-25 05:42:04.408",
                read_timestamp="2021-12-25T05:42:05Z",
            )
        ),
        ({"op": "upsert", "commit_ts": datetime(2021, 12, 25, 5, 42, 4, 408000, tzinfo=UTC)},),
        T,
    ),
    Golden("a table that is not copied", line(event(mysql("INSERT", False, table="u"))), (), T, ignored=1),
    Golden(
        "Oracle: SCN, record set, SQL number, row id",
        line(
            event(
                {
                    "schema": "ROOT",
                    "table": "T",
                    "database": "DB1",
                    "row_id": "AAAPwRAALAAMzMBABD",
                    "scn": 15869116216871,
                    "is_deleted": False,
                    "change_type": "INSERT",
                    "ssn": 67,
                    "rs_id": " 0x0073c9.000a4e4c.01d0 ",
                    "tx_id": "0a",
                    "log_file": "",
                    "primary_keys": ["id"],
                },
                "oracle-cdc-logminer",
                uuid="d7989206-380f-0e81-8056-240501101100",
            )
        ),
        (
            {
                "table": "ROOT.T",
                "op": "insert",
                "order_key": key_of("01 000000000e6ed108f627 000073c9000a4e4c01d0 00000043 0000006c 01"),
                "row_id": "AAAPwRAALAAMzMBABD",
                "tx_id": "0a",
            },
        ),
        ORACLE,
    ),
    Golden(
        "PostgreSQL: the LSN of the row",
        line(
            event(
                {
                    "schema": "public",
                    "table": "t",
                    "is_deleted": False,
                    "change_type": "UPDATE",
                    "tx_id": 77,
                    "lsn": "16/CB002DB0",
                    "primary_keys": ["id"],
                },
                "postgresql-cdc",
            )
        ),
        ({"table": "public.t", "op": "upsert", "order_key": key_of("01 00000016cb002db0 00000000 01"), "tx_id": "77"},),
        PG,
    ),
    Golden(
        "SQL Server: an index in place of a key",
        line(
            event(
                {
                    "schema": "dbo",
                    "table": "t",
                    "database": "db",
                    "lsn": "00000025:00000728:0003",
                    "tx_id": "x",
                    "change_type": "DELETE",
                    "is_deleted": True,
                    "replication_index": ["id"],
                },
                "sqlserver-cdc",
            )
        ),
        ({"table": "db.dbo.t", "op": "delete", "order_key": key_of("01 00000025000007280003 00000000 00")},),
        MSSQL,
    ),
    Golden(
        "Salesforce: only its clock",
        line(
            event(
                {
                    "object_name": "Account",
                    "domain": "d",
                    "change_type": "UPDATE",
                    "is_deleted": False,
                    "primary_keys": ["id"],
                },
                "salesforce-cdc",
            )
        ),
        ({"table": "Account", "op": "upsert", "order_key": key_of("01 0000018bcfe56800 00000000 01")},),
        FORCE,
    ),
    Golden(
        "MongoDB: documents, in the order of the oplog",
        line(
            event(
                {
                    "database": "d",
                    "collection": "c",
                    "change_type": "UPDATE",
                    "is_deleted": False,
                    "primary_keys": ["_id"],
                },
                "cdc",
                sort_keys=[1700000000, 5],
                payload={"_id": '{"$oid": "65"}', "data": {"n": {"$numberLong": "1"}}},
            )
        ),
        (
            {
                "table": "d.c",
                "op": "upsert",
                "order_key": key_of("01 000000006553f100 0000000000000005 00000000 01"),
                "key": '["{\\"$oid\\": \\"65\\"}"]',
                "after": '{"_id":"{\\"$oid\\": \\"65\\"}","data":"{\\"n\\":{\\"$numberLong\\":\\"1\\"}}"}',
            },
        ),
    ),
    *(
        Golden(
            f"MongoDB: a document that was there, read as {method}",
            line(
                event(
                    {"database": "d", "collection": "c", "change_type": "READ", "is_deleted": False},
                    method,
                    sort_keys=[1700000000, 5],
                    payload={"_id": "1", "data": {}},
                )
            ),
            (
                {
                    "op": "read",
                    "order_key": key_of("00 0000018bcfe5687b 0000000000000000 00000000 01"),
                    "snapshot": "backfill",
                },
            ),
        )
        for method in ("backfill", "cdc")
    ),
    Golden(
        "Oracle: an old stream, without the key",
        Message(avro.file(OLD_ORACLE, [event(OLD, "oracle-cdc-logminer")]), topic="f.avro", channel="f.avro"),
        ({"table": "ROOT.T", "op": "insert", "key": None, "after": '{"id":1,"v":"x"}', "warnings": ("no_key",)},),
    ),
    Golden(
        "an Avro file whose records are not in the order of its events",
        Message(avro.file(PLAIN, OUT_OF_ORDER), topic="f.avro", channel="f.avro"),
        (
            {"key": "[1]", "order_key": key_of("01 0000000000000083 00000000000364ff 00000001 01")},
            {"key": "[2]", "order_key": key_of("01 0000000000000083 00000000000366c5 00000002 01")},
            {"key": "[3]", "order_key": key_of("01 0000000000000083 00000000000362bc 00000000 01")},
        ),
    ),
    Golden(
        "an Avro file of every type, compressed",
        Message(
            avro.file(TYPED, [event(mysql("INSERT", False), payload=TYPED_ROW)], "deflate"),
            topic="f.avro",
            channel="f.avro",
        ),
        ({"key": "[1]", "after": TYPED_AFTER, "after_complete": True},),
    ),
    Golden(
        "an Avro file that refers to types by their names",
        Message(avro.file(AGAIN, [event(mysql("INSERT", False), payload=AGAIN_ROW)]), topic="f.avro", channel="f.avro"),
        ({"key": "[1]", "after": AGAIN_AFTER, "after_complete": True},),
    ),
    Golden(
        "MongoDB: numbers that JSON does not have",
        line(
            event(
                {"database": "d", "collection": "c", "change_type": "UPDATE", "is_deleted": False},
                "cdc",
                sort_keys=[1700000000, 5],
                payload={"_id": "1", "data": OLD_NUMBERS},
            )
        ),
        ({"after": f'{{"_id":"1","data":{json.dumps(NUMBERS)}}}'},),
    ),
]
