"""Parts of Debezium's messages."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.core.table.schema import Kind, TableSchema
from tests.connectors.formats.golden import Golden, as_json, column

S = TableSchema(
    "inv.s",
    (
        column("id", Kind.INT32, "int32", nullable=False),
        column("v", Kind.TEXT, "string"),
        column("at", Kind.TIMESTAMP, "int64 io.debezium.time.MicroTimestamp"),
    ),
    ("id",),
)
KEYLESS = TableSchema("inv.n", (column("v", Kind.TEXT, "string"),))
PG_AT = "0000000001614868 0000000001614868"
PLACEHOLDER = "__debezium_unavailable_value"


def pg(snapshot: object = "false", **more: Any) -> dict[str, Any]:
    block = {
        "version": "3.6.3.Final",
        "connector": "postgresql",
        "name": "srv",
        "ts_ms": 1700000000123,
        "snapshot": snapshot,
        "db": "postgres",
        "sequence": '["23152744","23152744"]',
        "ts_us": 1700000000123456,
        "ts_ns": 1700000000123456000,
        "schema": "inv",
        "table": "s",
        "txId": 782,
        "lsn": 23152744,
        "xmin": None,
        "origin": None,
        "origin_lsn": None,
    }
    return {**block, **more}


def tx(order: int) -> dict[str, Any]:
    return {"id": "782:23152744", "total_order": order, "data_collection_order": order}


def envelope(op: str, before: object, after: object, source: object, order: int | None = 1) -> dict[str, Any]:
    return {
        "before": before,
        "after": after,
        "source": source,
        "transaction": None if order is None else tx(order),
        "op": op,
        "ts_ms": 1700000000200,
        "ts_us": 1700000000200001,
        "ts_ns": 1700000000200001000,
    }


def message(value: object, key: object = None, topic: str = "srv.inv.s", offset: int = 7, **more: Any) -> Message:
    body = None if value is None else as_json(value)
    return Message(
        body, None if key is None else as_json(key), topic=topic, channel=f"{topic}/0", offset=offset, **more
    )


def struct(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields), "optional": True, **more}


def field(name: str, kind: str, semantic: str = "", **parameters: str) -> dict[str, Any]:
    made: dict[str, Any] = {"type": kind, "optional": True, "field": name}
    if semantic:
        made |= {"name": semantic, "version": 1}
    return made | ({"parameters": parameters} if parameters else {})


def array(name: str, kind: str, semantic: str = "", **parameters: str) -> dict[str, Any]:
    return {"type": "array", "optional": True, "field": name, "items": field("", kind, semantic, **parameters)}


def with_schema(payload: dict[str, Any], *fields: dict[str, Any]) -> dict[str, Any]:
    rows = [{**struct(*fields), "field": name} for name in ("before", "after")]
    source = {**struct(field("version", "string")), "field": "source"}
    return {"schema": struct(*rows, source, name="srv.inv.s.Envelope", version=2), "payload": payload}


def key_schema(payload: dict[str, Any], kind: str = "int32") -> dict[str, Any]:
    return {"schema": struct(*(field(name, kind) for name in payload), name="Key"), "payload": payload}


def mysql(pos: int = 4106, row: int = 0, **more: Any) -> dict[str, Any]:
    block = {
        "version": "3.6.3.Final",
        "connector": "mysql",
        "name": "m",
        "ts_ms": 1700000000000,
        "snapshot": "false",
        "db": "shop",
        "sequence": None,
        "ts_us": 1700000000000000,
        "ts_ns": 1700000000000000000,
        "table": "t",
        "server_id": 1,
        "gtid": None,
        "file": "binlog.1000000",
        "pos": pos,
        "row": row,
        "thread": 9,
        "query": None,
    }
    return {**block, **more}


def typed(name: str, fields: list[dict[str, Any]], row: dict[str, Any], after_members: str, **record: Any) -> Golden:
    """A row of MySQL with its schema, and the columns it becomes."""
    value = with_schema(envelope("c", None, {"id": 1, **row}, mysql(), None), field("id", "int32"), *fields)
    expected = {
        "table": "shop.t",
        "op": "insert",
        "key": "[1]",
        "after": '{"id":1,' + after_members + "}",
        "after_complete": True,
    }
    return Golden(name, message(value, key_schema({"id": 1}), "m.shop.t"), ({**expected, **record},))


TIME, DATA, CONNECT = "io.debezium.time.", "io.debezium.data.", "org.apache.kafka.connect.data."
