"""Schemas and rows of Datastream's files, and messages made of them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.core.table.schema import Kind, TableSchema
from tests.connectors.formats import avro_writer as avro
from tests.connectors.formats.avro_writer import logical, nullable
from tests.connectors.formats.golden import as_json, column

T = TableSchema("shop.t", (column("id", Kind.INT64), column("v", Kind.TEXT)), ("id",))
PG = TableSchema("public.t", T.columns, ("id",))
MSSQL = TableSchema("db.dbo.t", T.columns, ("id",))
ORACLE = TableSchema("ROOT.T", T.columns, ("id",))
FORCE = TableSchema("Account", T.columns, ("id",))
PREFIX = "d7989206-380f-0e81-8056-2405"
AT_MS = 1700000000123


def event(
    metadata: dict[str, Any], method: str = "mysql-cdc-binlog", ordinal: str = "00000000", **more: Any
) -> dict[str, Any]:
    return {
        "stream_name": "projects/1/locations/l/streams/s",
        "read_method": method,
        "object": "shop_t",
        "schema_key": "k",
        "uuid": PREFIX + ordinal,
        "read_timestamp": AT_MS,
        "source_timestamp": AT_MS - 123,
        "sort_keys": [AT_MS, "mysql-bin.000131", 2550],
        "source_metadata": metadata,
        "payload": {"id": 1, "v": "x"},
        **more,
    }


def mysql(change_type: str | None, is_deleted: bool | None, **more: Any) -> dict[str, Any]:
    return {
        "table": "t",
        "database": "shop",
        "primary_keys": ["id"],
        "log_file": "mysql-bin.000131",
        "log_position": 2550,
        "change_type": change_type,
        "is_deleted": is_deleted,
        **more,
    }


def line(value: dict[str, Any]) -> Message:
    return Message(as_json(value), topic="shop_t/2024/01/01/00/00/f.jsonl", channel="f.jsonl", offset=3)


POSITION = "01 0000000000000083 00000000000009f6"

TYPED = avro.schema(
    avro.MYSQL,
    [
        nullable("id", "long"),
        nullable("a", logical("long", "timestamp-micros")),
        nullable("b", logical("bytes", "decimal", precision=10, scale=2)),
        nullable("c", logical("string", "number")),
        nullable("d", logical("string", "varchar", length=10)),
        nullable("e", logical("long", "time-micros")),
        nullable("f", logical("string", "json")),
        nullable(
            "g",
            {
                "type": "record",
                "name": "timestampTz",
                "fields": [
                    {"name": "timestamp", "type": logical("long", "timestamp-micros")},
                    {"name": "offset", "type": logical("int", "time-millis")},
                ],
            },
        ),
        nullable("h", "bytes"),
        nullable("i", {"type": "record", "name": "old", "fields": [*avro.strings("value"), nullable("length", "int")]}),
        nullable("j", "double"),
        nullable("k", logical("int", "date")),
        nullable("l", {"type": "array", "items": "long"}),
        nullable("m", "boolean"),
    ],
)
TYPED_ROW = {
    "id": 1,
    "a": datetime(2024, 2, 29, 12, 34, 56, 123456, tzinfo=UTC),
    "b": Decimal("-12.30"),
    "c": "18446744073709551615",
    "d": "é",
    "e": 45296123456,
    "f": '{"a": 1}',
    "g": {"timestamp": datetime(2024, 2, 29, 12, 34, 56, tzinfo=UTC), "offset": 3600000},
    "h": b"\x01\x02",
    "i": {"value": "old", "length": 3},
    "j": float("inf"),
    "k": 19782,
    "l": [1, 2],
    "m": True,
}
TYPED_AFTER = (
    '{"id":1,"a":"2024-02-29T12:34:56.123456","b":"-12.30","c":"18446744073709551615","d":"é","e":"12:34:56.123456",'
    '"f":"{\\"a\\": 1}","g":"2024-02-29T12:34:56Z","h":"AQI=","i":"old","j":"Infinity","k":"2024-02-29","l":"[1,2]",'
    '"m":true}'
)
PLAIN = avro.schema(avro.MYSQL, [nullable("id", "long"), *avro.strings("v")])


def record(name: str, **members: Any) -> dict[str, Any]:
    fields = [{"name": member, "type": kind} for member, kind in members.items()]
    return {"type": "record", "name": name, "namespace": "unified", "fields": fields}


OFFSET = logical("int", "time-millis")
AGAIN = avro.schema(
    avro.MYSQL,
    [
        nullable("id", "long"),
        nullable(
            "a",
            record("timestampTz", timestamp=logical("long", "timestamp-micros"), offset=OFFSET),
        ),
        nullable("b", "unified.timestampTz"),
        nullable("c", record("timeTz", time=logical("long", "time-micros"), offset=OFFSET)),
        nullable("d", "unified.timeTz"),
        nullable("e", record("calendarDate", year="int", month="int", day="int")),
        nullable("f", "unified.calendarDate"),
        nullable("g", record("varchar", value=["null", "string"], length="int")),
        nullable("h", "unified.varchar"),
        nullable("i", record("interval", months="int", hours="int", micros="long")),
        nullable("j", "unified.interval"),
        nullable("k", {"type": "enum", "name": "mood", "symbols": ["sad", "happy"]}),
        nullable("l", "mood"),
        nullable("m", record("pair", x="unified.calendarDate")),
    ],
)
"""Types that Avro describes once and two columns use; the second refers to the name."""
TZ = {"timestamp": datetime(2024, 2, 29, 12, 34, 56, tzinfo=UTC), "offset": 0}
TIME_TZ = {"time": 45296123456, "offset": 3600000}
DAY = {"year": 2024, "month": 2, "day": 29}
TEXT = {"value": "x", "length": 3}
SPAN = {"months": 1, "hours": 2, "micros": 3}
AGAIN_ROW = {
    "id": 1,
    "a": TZ,
    "b": TZ,
    "c": TIME_TZ,
    "d": TIME_TZ,
    "e": DAY,
    "f": DAY,
    "g": TEXT,
    "h": TEXT,
    "i": SPAN,
    "j": SPAN,
    "k": "sad",
    "l": "happy",
    "m": {"x": DAY},
}
AGAIN_AFTER = (
    '{"id":1,"a":"2024-02-29T12:34:56Z","b":"2024-02-29T12:34:56Z","c":"12:34:56.123456+01:00",'
    '"d":"12:34:56.123456+01:00","e":"2024-02-29","f":"2024-02-29","g":"x","h":"x",'
    '"i":"{\\"months\\":1,\\"hours\\":2,\\"micros\\":3}","j":"{\\"months\\":1,\\"hours\\":2,\\"micros\\":3}",'
    '"k":"sad","l":"happy","m":"{\\"x\\":{\\"year\\":2024,\\"month\\":2,\\"day\\":29}}"}'
)
OLD = {"schema": "ROOT", "table": "T", "database": "DB1", "row_id": "AAAP", "scn": 7, "ssn": 0, "rs_id": "0x1.2.3"}
OLD |= {"is_deleted": False, "change_type": "INSERT", "tx_id": "0a", "log_file": ""}
OLD_ORACLE = avro.schema(
    [
        *avro.strings("schema", "table", "database", "row_id", "rs_id", "tx_id", "log_file", "change_type"),
        *(nullable(name, "long") for name in ("scn", "ssn")),
        nullable("is_deleted", "boolean"),
    ],
    [nullable("id", "long"), *avro.strings("v")],
)
OUT_OF_ORDER = [
    event(mysql("INSERT", False, log_position=222463), ordinal="00000001"),
    event(mysql("INSERT", False, log_position=222917), ordinal="00000010", payload={"id": 2, "v": "y"}),
    event(mysql("INSERT", False, log_position=221884), ordinal="00000000", payload={"id": 3, "v": None}),
]
