"""Debezium's messages and their meaning, after its documentation and after recorded ones."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.connectors.formats.message import Message
from airflow_cdc_provider.core.tables import Kind, TableSchema
from tests.connectors.formats.golden import Golden, as_json, column, key_of

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


def typed(name: str, fields: list[dict[str, Any]], row: dict[str, Any], told_after: str, **record: Any) -> Golden:
    """A row of MySQL with its schema: what its columns become."""
    value = with_schema(envelope("c", None, {"id": 1, **row}, mysql(), None), field("id", "int32"), *fields)
    told = {
        "table": "shop.t",
        "op": "insert",
        "key": "[1]",
        "after": '{"id":1,' + told_after + "}",
        "after_complete": True,
    }
    return Golden(name, message(value, key_schema({"id": 1}), "m.shop.t"), ({**told, **record},))


TIME, DATA, CONNECT = "io.debezium.time.", "io.debezium.data.", "org.apache.kafka.connect.data."

ROWS = [
    Golden(
        "the old half of a key change",
        message(envelope("d", {"id": 1, "v": None, "at": None}, None, pg()), {"id": 1}),
        (
            {
                "table": "inv.s",
                "op": "delete",
                "order_key": key_of(f"{PG_AT} 0000000000000001 00"),
                "key_before": "[1]",
                "key": None,
                "before": '{"id":1}',
                "before_complete": False,
                "phase": 0,
                "link_id": key_of(PG_AT),
                "tx_id": "782",
                "tx_seq": 1,
                "snapshot": "none",
            },
        ),
        S,
    ),
    Golden("its tombstone", message(None, {"id": 1}), (), S, ignored=1),
    Golden("the tombstone of a table without key", message(None, None), (), S, ignored=1),
    Golden(
        "the new half of a key change, with header",
        message(
            envelope("c", None, {"id": 2, "v": "x", "at": 1709210096123456}, pg(), 2),
            {"id": 2},
            headers=(("__debezium.oldkey", b'{"id":1}'),),
        ),
        (
            {
                "op": "insert",
                "order_key": key_of(f"{PG_AT} 0000000000000002 01"),
                "key_before": None,
                "key": "[2]",
                "after": '{"id":2,"v":"x","at":"2024-02-29T12:34:56.123456"}',
                "after_complete": True,
                "phase": 1,
                "link_id": key_of(PG_AT),
                "tx_seq": 2,
            },
        ),
        S,
    ),
    Golden(
        "the new half of a key change, without header, tells by what it does not know",
        message(envelope("c", None, {"id": 2, "v": PLACEHOLDER, "at": None}, pg(), 2), {"id": 2}),
        (
            {
                "op": "insert",
                "after": '{"id":2,"at":null}',
                "after_complete": False,
                "phase": 1,
                "link_id": key_of(PG_AT),
            },
        ),
        S,
    ),
    Golden(
        "an update with an unchanged wide column",
        message(envelope("u", None, {"id": 2, "v": PLACEHOLDER, "at": None}, pg(), 3), {"id": 2}),
        (
            {
                "op": "update",
                "key_before": "[2]",
                "key": "[2]",
                "before": None,
                "after": '{"id":2,"at":null}',
                "after_complete": False,
                "phase": None,
                "link_id": None,
            },
        ),
        S,
    ),
    Golden(
        "an update under REPLICA IDENTITY FULL, whose old row knows the wide column",
        message(
            envelope("u", {"id": 2, "v": "w", "at": 1}, {"id": 2, "v": PLACEHOLDER, "at": None}, pg(), 3), {"id": 2}
        ),
        (
            {
                "op": "update",
                "before": '{"id":2,"v":"w","at":"1970-01-01T00:00:00.000001"}',
                "before_complete": True,
                "after": '{"id":2,"v":"w","at":null}',
                "after_complete": True,
            },
        ),
        S,
        {"full_before": True},
    ),
    Golden(
        "a plain insert in a transaction that began the stream",
        message(
            envelope("c", None, {"id": 3, "v": "", "at": None}, pg(sequence='[null,"500"]', lsn=500), None), {"id": 3}
        ),
        (
            {
                "op": "insert",
                "order_key": key_of("0000000000000000 00000000000001f4 0000000000000000 01"),
                "after": '{"id":3,"v":"","at":null}',
                "phase": None,
                "tx_id": "782",
                "tx_seq": None,
            },
        ),
        S,
    ),
    *(
        Golden(
            f"a copied row, marked {marker!r}",
            message(
                envelope("r", None, {"id": 3, "v": "x", "at": None}, pg(marker, sequence='[null,"500"]'), None),
                {"id": 3},
            ),
            (
                {
                    "op": "read",
                    "order_key": key_of("0000000000000000 0000000000000000 0000000001614868 01"),
                    "key": "[3]",
                    "snapshot": "initial",
                },
            ),
            S,
        )
        for marker in (True, "true", "first", "first_in_data_collection", "last_in_data_collection", "last")
    ),
    Golden(
        "a row of an incremental copy, which tells no place",
        message(
            envelope(
                "r", None, {"id": 3, "v": "x", "at": None}, pg("incremental", sequence=None, lsn=None, txId=None), None
            ),
            {"id": 3},
        ),
        (
            {
                "op": "read",
                "order_key": key_of("0000000000000000 0000000000000000 0000000000000007 01"),
                "snapshot": "incremental",
                "tx_id": None,
            },
        ),
        S,
    ),
    Golden(
        "one of two equal rows that COPY put into a table without key",
        message(envelope("c", None, {"v": "x"}, pg(table="n"), 2), None, "srv.inv.n"),
        ({"op": "insert", "key": None, "order_key": key_of(f"{PG_AT} 0000000000000002 01"), "after": '{"v":"x"}'},),
        KEYLESS,
    ),
    Golden(
        "the same without transaction metadata: the offset tells them apart",
        message(envelope("c", None, {"v": "x"}, pg(table="n"), None), None, "srv.inv.n"),
        ({"op": "insert", "order_key": key_of(f"{PG_AT} 0000000000000007 01")},),
        KEYLESS,
    ),
    Golden(
        "a deleted row of a table without key is whole",
        message(envelope("d", {"v": "x"}, None, pg(table="n")), None, "srv.inv.n"),
        ({"op": "delete", "key_before": None, "before": '{"v":"x"}', "before_complete": True, "link_id": None},),
        KEYLESS,
    ),
    Golden(
        "a truncate",
        message(envelope("t", None, None, pg(), 1)),
        ({"op": "truncate", "table": "inv.s", "key": None, "after": None},),
        S,
    ),
    Golden(
        "a table that nobody copies",
        message(envelope("c", None, {"id": 1}, pg(table="other"))),
        (),
        S,
        ignored=1,
    ),
    Golden(
        "a row with its schema: columns and key are told",
        message(
            with_schema(envelope("c", None, {"id": 3, "v": "x"}, pg()), field("id", "int32"), field("v", "string")),
            key_schema({"id": 3}),
        ),
        ({"op": "insert", "key": "[3]", "after": '{"id":3,"v":"x"}', "after_complete": True},),
    ),
    Golden(
        "an old envelope: no microseconds, and null for what newer ones leave out",
        message(
            {
                "before": None,
                "after": {"id": 1, "v": "x", "at": None},
                "source": {k: v for k, v in pg().items() if k not in ("ts_us", "ts_ns")},
                "op": "c",
                "ts_ms": 5,
            },
            {"id": 1},
        ),
        ({"op": "insert", "tx_id": "782", "tx_seq": None},),
        S,
    ),
    Golden(
        "MySQL: the number of the file counts, not its text",
        message(
            with_schema(envelope("d", {"id": 1}, None, mysql(row=2), None), field("id", "int32")),
            key_schema({"id": 1}),
            "m.shop.t",
        ),
        (
            {
                "table": "shop.t",
                "op": "delete",
                "order_key": key_of("00000000000f4240 000000000000100a 00000002 00"),
                "before": '{"id":1}',
                "before_complete": True,
            },
        ),
    ),
    Golden(
        "MariaDB: the same, with a GTID",
        message(
            with_schema(
                envelope("u", {"id": 1}, {"id": 1}, mysql(connector="mariadb", gtid="0-1-77"), None),
                field("id", "int32"),
            ),
            key_schema({"id": 1}),
            "m.shop.t",
        ),
        ({"op": "update", "tx_id": "0-1-77", "before_complete": True},),
    ),
    Golden(
        "MySQL: a row of an incremental copy stands behind the change at its place",
        message(
            with_schema(envelope("r", None, {"id": 1}, mysql(snapshot="incremental"), None), field("id", "int32")),
            key_schema({"id": 1}),
            "m.shop.t",
        ),
        (
            {
                "op": "read",
                "order_key": key_of("00000000000f4240 000000000000100a ffffffff 01"),
                "snapshot": "incremental",
            },
        ),
    ),
    Golden(
        "SQL Server: commit, change, serial number",
        message(
            with_schema(
                envelope(
                    "u",
                    {"id": 1},
                    {"id": 1},
                    {
                        "connector": "sqlserver",
                        "ts_ms": 1,
                        "snapshot": "false",
                        "db": "d",
                        "schema": "dbo",
                        "table": "t",
                        "change_lsn": "00000025:00000728:0002",
                        "commit_lsn": "00000025:00000728:0003",
                        "event_serial_no": 2,
                    },
                    None,
                ),
                field("id", "int32"),
            ),
            key_schema({"id": 1}),
            "s.d.dbo.t",
        ),
        (
            {
                "table": "d.dbo.t",
                "op": "update",
                "order_key": key_of("00000025000007280003 00000000 00000025000007280002 02 01"),
                "tx_id": "00000025:00000728:0003",
            },
        ),
    ),
    Golden(
        "Oracle: commit SCN, thread, SCN, record set, SQL number; and the row's id",
        message(
            with_schema(
                envelope(
                    "d",
                    {"ID": 1},
                    None,
                    {
                        "connector": "oracle",
                        "ts_ms": 1,
                        "snapshot": "false",
                        "db": "ORCL",
                        "schema": "ROOT",
                        "table": "T",
                        "txId": "0a000b",
                        "scn": "18446744073709551617",
                        "commit_scn": "18446744073709551700",
                        "rs_id": " 0x0073c9.000a4e4c.01d0 ",
                        "ssn": 67,
                        "redo_thread": 2,
                        "row_id": "AAAPwRAALAAMzMBABD",
                        "commit_ts_ms": 1700000000000,
                    },
                    None,
                ),
                field("ID", "int32"),
            ),
            key_schema({"ID": 1}),
            "o.ROOT.T",
        ),
        (
            {
                "table": "ROOT.T",
                "op": "delete",
                "order_key": key_of("00010000000000000054 0002 00010000000000000001 000073c9000a4e4c01d0 00000043 00"),
                "row_id": "AAAPwRAALAAMzMBABD",
                "tx_id": "0a000b",
            },
        ),
    ),
]

TYPES = [
    typed(
        "decimals: precise, of any scale, negative",
        [
            field("a", "bytes", f"{CONNECT}Decimal", scale="2", **{"connect.decimal.precision": "10"}),
            field("b", "bytes", f"{CONNECT}Decimal", scale="0", **{"connect.decimal.precision": "5"}),
            field("c", "struct", f"{DATA}VariableScaleDecimal"),
            field("d", "double"),
            field("e", "string"),
        ],
        {"a": "BNI=", "b": "/w==", "c": {"scale": 1, "value": "Dw=="}, "d": "NaN", "e": "12.340"},
        '"a":"12.34","b":"-1","c":"1.5","d":"NaN","e":"12.340"',
    ),
    typed(
        "dates and times, adaptive",
        [
            field("a", "int32", f"{TIME}Date"),
            field("b", "int32", f"{TIME}Time"),
            field("c", "int64", f"{TIME}MicroTime"),
            field("d", "int64", f"{TIME}NanoTime"),
            field("e", "int64", f"{TIME}Timestamp"),
            field("f", "int64", f"{TIME}MicroTimestamp"),
            field("g", "int64", f"{TIME}NanoTimestamp"),
            field("h", "string", f"{TIME}ZonedTimestamp"),
            field("i", "string", f"{TIME}ZonedTime"),
            field("j", "int32", f"{TIME}Year"),
            field("k", "int64", f"{TIME}MicroDuration"),
            field("l", "string", f"{TIME}Interval"),
        ],
        {
            "a": 19782,
            "b": 45296123,
            "c": 45296123456,
            "d": 45296123456789,
            "e": 1709210096123,
            "f": 1709210096123456,
            "g": 1709210096123456000,
            "h": "2024-02-29T12:34:56.123456+02:00",
            "i": "12:34:56+02:00",
            "j": 2024,
            "k": 37091106780000,
            "l": "P1Y2M3DT4H5M6.78S",
        },
        '"a":"2024-02-29","b":"12:34:56.123","c":"12:34:56.123456","d":"12:34:56.123456",'
        '"e":"2024-02-29T12:34:56.123000","f":"2024-02-29T12:34:56.123456","g":"2024-02-29T12:34:56.123456",'
        '"h":"2024-02-29T10:34:56.123456Z","i":"12:34:56+02:00","j":2024,"k":37091106780000,"l":"P1Y2M3DT4H5M6.78S"',
        warnings=("nanoseconds_cut",),
    ),
    typed(
        "dates and times of Connect, and as ISO text",
        [
            field("a", "int32", f"{CONNECT}Date"),
            field("b", "int32", f"{CONNECT}Time"),
            field("c", "int64", f"{CONNECT}Timestamp"),
            field("d", "string", f"{TIME}IsoDate"),
            field("e", "string", f"{TIME}IsoTime"),
            field("f", "string", f"{TIME}IsoTimestamp"),
        ],
        {"a": 19782, "b": 1, "c": 1709210096123, "d": "2024-02-29Z", "e": "12:34:56Z", "f": "2024-02-29T12:34:56.5Z"},
        '"a":"2024-02-29","b":"00:00:00.001","c":"2024-02-29T12:34:56.123000","d":"2024-02-29","e":"12:34:56Z",'
        '"f":"2024-02-29T12:34:56.500000"',
    ),
    typed(
        "infinity and years that no target has",
        [
            field("a", "int64", f"{TIME}MicroTimestamp"),
            field("b", "int64", f"{TIME}MicroTimestamp"),
            field("c", "string", f"{TIME}ZonedTimestamp"),
            field("d", "string", f"{TIME}ZonedTimestamp"),
            field("e", "double"),
            field("f", "double"),
            field("g", "int32", f"{TIME}Date"),
        ],
        {
            "a": 9223372036825200000,
            "b": -9223372036832400000,
            "c": "infinity",
            "d": "-infinity",
            "e": "Infinity",
            "f": "-Infinity",
            "g": 10_000_000,
        },
        '"a":"9999-12-31T23:59:59.999999","b":"0001-01-01T00:00:00","c":"9999-12-31T23:59:59.999999Z",'
        '"d":"0001-01-01T00:00:00Z","e":"Infinity","f":"-Infinity","g":"9999-12-31"',
        warnings=("infinity_sentinel", "year_out_of_range"),
    ),
    typed(
        "unsigned numbers, told as signed ones",
        [field("a", "int64", **{"__debezium.source.column.type": "BIGINT UNSIGNED"}), field("b", "int64")],
        {"a": -1, "b": -1},
        '"a":"18446744073709551615","b":-1',
        warnings=("unsigned_wrapped",),
    ),
    typed(
        "bytes, bits, enumerations, documents",
        [
            field("a", "bytes"),
            field("b", "bytes", f"{DATA}Bits", length="10"),
            field("c", "boolean"),
            field("d", "string", f"{DATA}Enum", allowed="x,y"),
            field("e", "string", f"{DATA}EnumSet", allowed="p,q,r"),
            field("f", "string", f"{DATA}Json"),
            field("g", "string", f"{DATA}Uuid"),
            field("h", "array"),
            field("i", "struct", f"{DATA}geometry.Point"),
            field("j", "int16"),
        ],
        {
            "a": "AQID",
            "b": "qgI=",
            "c": True,
            "d": "y",
            "e": "p,r",
            "f": '{"a": 1}',
            "g": "11111111-2222-3333-4444-555555555555",
            "h": [1, None, 2],
            "i": {"x": 1, "y": 2.5, "wkb": "AQ==", "srid": None},
            "j": True,
        },
        '"a":"AQID","b":"1010101010","c":true,"d":"y","e":"p,r","f":"{\\"a\\": 1}",'
        '"g":"11111111-2222-3333-4444-555555555555","h":"[1,null,2]",'
        '"i":"{\\"x\\":1,\\"y\\":2.5,\\"wkb\\":\\"AQ==\\",\\"srid\\":null}","j":1',
    ),
    *(
        typed(
            f"an unavailable value: {name}", [field("w", kind)], {"w": form}, "", after='{"id":1}', after_complete=False
        )
        for name, kind, form in (
            ("text", "string", PLACEHOLDER),
            ("bytes", "bytes", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="),
            ("bytes as hex", "string", PLACEHOLDER.encode().hex()),
            ("texts", "array", [PLACEHOLDER]),
            ("numbers", "array", list(PLACEHOLDER.encode())),
            ("uuids", "array", ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"]),
            ("a map", "map", {PLACEHOLDER: PLACEHOLDER}),
            ("a map as JSON", "string", f'{{"{PLACEHOLDER}":"{PLACEHOLDER}"}}'),
        )
    ),
]

MONGO = {"connector": "mongodb", "ts_ms": 1700000000000, "snapshot": "false", "db": "d", "collection": "c", "ord": 3}
OID = '{"$oid": "65"}'
MONGO_KEY = '["{\\"$oid\\": \\"65\\"}"]'

CONTROL = [
    Golden(
        "the begin of a transaction",
        message({"status": "BEGIN", "id": "779:23151656", "event_count": None, "data_collections": None, "ts_ms": 1}),
        (
            {
                "table": "",
                "op": "message",
                "tx_id": "779",
                "after": '{"kind":"transaction begin","status":"BEGIN","id":"779:23151656","event_count":null,'
                '"data_collections":null,"ts_ms":1}',
            },
        ),
    ),
    Golden(
        "the end of a transaction",
        message(
            {
                "status": "END",
                "id": "file=binlog.1,pos=4",
                "event_count": 4,
                "data_collections": [{"data_collection": "inv.s", "event_count": 4}],
                "ts_ms": 1,
            }
        ),
        ({"table": "", "op": "message", "tx_id": "file=binlog.1,pos=4"},),
    ),
    Golden(
        "a logical message",
        message({**envelope("m", None, None, pg()), "message": {"prefix": "p", "content": "bQ=="}}, {"prefix": "p"}),
        ({"table": "", "op": "message", "after": '{"kind":"message","prefix":"p","content":"bQ=="}', "tx_id": "782"},),
    ),
    Golden(
        "a heartbeat",
        message({"ts_ms": 5}, {"serverName": "srv"}, "__debezium-heartbeat.srv"),
        ({"table": "", "op": "message", "after": '{"kind":"heartbeat","ts_ms":5}'},),
    ),
    Golden(
        "a table that the connector met when it began: columns, and no change",
        message(
            {
                "source": mysql(snapshot="true"),
                "ts_ms": 1,
                "databaseName": "shop",
                "schemaName": None,
                "ddl": "CREATE TABLE t (id bigint unsigned primary key, d datetime(6), n decimal(10,2))",
                "tableChanges": [
                    {
                        "type": "CREATE",
                        "id": '"shop"."t"',
                        "table": {
                            "defaultCharsetName": "utf8",
                            "primaryKeyColumnNames": ["id"],
                            "columns": [
                                {"name": "n", "typeName": "DECIMAL", "length": 10, "scale": 2, "position": 3},
                                {"name": "id", "typeName": "BIGINT UNSIGNED", "position": 1, "optional": False},
                                {"name": "d", "typeName": "DATETIME", "length": 6, "position": 2, "optional": True},
                            ],
                        },
                    }
                ],
            },
            {"databaseName": "shop"},
            "m",
        ),
        (
            {
                "table": "shop.t",
                "op": "schema",
                "warnings": ("historical",),
                "snapshot": "initial",
                "after": '{"table":"shop.t","columns":['
                '{"name":"id","type":{"kind":"decimal","precision":20,"scale":0},"nullable":false,'
                '"native":"int64(unsigned=true)","initial":null},'
                '{"name":"d","type":{"kind":"timestamp","precision":null,"scale":null},"nullable":true,'
                '"native":"int64 io.debezium.time.MicroTimestamp","initial":null},'
                '{"name":"n","type":{"kind":"decimal","precision":10,"scale":2},"nullable":true,'
                '"native":"bytes org.apache.kafka.connect.data.Decimal(scale=2,connect.decimal.precision=10)",'
                '"initial":null}],"key":["id"],"regime":"single"}',
            },
        ),
    ),
    Golden(
        "a statement that is about no table",
        message(
            {"source": mysql(), "ts_ms": 1, "databaseName": "shop", "ddl": "SET x=1", "tableChanges": []}, None, "m"
        ),
        ({"table": "", "op": "message"},),
    ),
    Golden(
        "a dropped table",
        message(
            {
                "source": mysql(),
                "ts_ms": 1,
                "databaseName": "shop",
                "ddl": "DROP TABLE t",
                "tableChanges": [{"type": "DROP", "id": '"shop"."t"', "table": None}],
            },
            None,
            "m",
        ),
        ({"table": "shop.t", "op": "message", "after": '{"kind":"table","type":"DROP"}', "warnings": ()},),
    ),
    Golden(
        "MongoDB: a document that came",
        message(envelope("c", None, '{"_id": {"$oid": "65"}, "n": 1}', MONGO, None), {"id": OID}, "g.d.c"),
        (
            {
                "table": "d.c",
                "op": "insert",
                "key": MONGO_KEY,
                "order_key": key_of("000000006553f100 0000000000000003 0000000000000000 01"),
                "after": '{"_id":"{\\"$oid\\": \\"65\\"}",'
                '"document":"{\\"_id\\": {\\"$oid\\": \\"65\\"}, \\"n\\": 1}"}',
                "after_complete": True,
            },
        ),
    ),
    Golden(
        "MongoDB: an update that tells only what changed",
        message(
            {
                **envelope("u", None, None, MONGO, None),
                "updateDescription": {"updatedFields": '{"n": 2}', "removedFields": ["a.b"], "truncatedArrays": None},
            },
            {"id": OID},
            "g.d.c",
        ),
        ({"op": "update", "key": MONGO_KEY, "refetch": ("*",), "after": '{"_id":"{\\"$oid\\": \\"65\\"}"}'},),
    ),
    Golden(
        "MongoDB: an update whose document was looked up",
        message(
            {
                **envelope("u", None, '{"_id": 1, "n": 3}', MONGO, None),
                "updateDescription": {"updatedFields": '{"n": 2}', "removedFields": None, "truncatedArrays": None},
            },
            {"id": "1"},
            "g.d.c",
        ),
        ({"op": "update", "key": '["1"]', "warnings": ("later_image",), "after_complete": True},),
    ),
    Golden(
        "MongoDB: a document that went",
        message(envelope("d", None, None, MONGO, None), {"id": "1"}, "g.d.c"),
        ({"op": "delete", "key_before": '["1"]', "key": None},),
    ),
]

UNWRAPPED = [
    Golden(
        "an unwrapped row",
        message(
            {"id": 1, "v": "x", "at": None, "__op": "u", "__lsn": 5, "__source_ts_ms": 1000, "__deleted": "false"},
            {"id": 1},
        ),
        (
            {
                "op": "upsert",
                "order_key": key_of("0000000000000007 01"),
                "key": "[1]",
                "after": '{"id":1,"v":"x","at":null}',
                "after_complete": True,
            },
        ),
        S,
        {"unwrapped": True, "topic_prefix": "srv"},
    ),
    Golden(
        "an unwrapped delete, rewritten to a row",
        message({"id": 1, "v": None, "at": None, "__deleted": "true"}, {"id": 1}),
        ({"op": "delete", "key_before": "[1]", "key": None, "after": None},),
        S,
        {"unwrapped": True, "topic_prefix": "srv"},
    ),
    Golden(
        "an unwrapped delete, left as a tombstone",
        message(None, {"id": 1}),
        ({"op": "delete", "key_before": "[1]"},),
        S,
        {"unwrapped": True, "topic_prefix": "srv"},
    ),
]

GOLDENS = [*ROWS, *TYPES, *CONTROL, *UNWRAPPED]
