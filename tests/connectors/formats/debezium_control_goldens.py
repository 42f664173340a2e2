"""Debezium's messages that are not about rows of tables, and documents of MongoDB."""

from __future__ import annotations

import json

from tests.connectors.formats.debezium_messages import envelope, message, mysql, pg
from tests.connectors.formats.golden import Golden, key_of

MONGO = {"connector": "mongodb", "ts_ms": 1700000000000, "snapshot": "false", "db": "d", "collection": "c", "ord": 3}
OID = '{"$oid": "65"}'
OLD_NUMBERS = r'{"_id": 1, "a": NaN, "b": [-Infinity, "\" NaN", Infinity]}'
NUMBERS = (
    r'{"_id": 1, "a": {"$numberDouble":"NaN"}, "b": [{"$numberDouble":"-Infinity"}, "\" NaN", '
    r'{"$numberDouble":"Infinity"}]}'
)
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
        "a table that existed when the connector started: columns, and no change",
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
                "op": "message",
                "schema_id": "",
                "warnings": ("historical",),
                "snapshot": "initial",
                "after": '{"kind":"schema","table":"shop.t","columns":['
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
        "a statement without a table",
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
        "MongoDB: an inserted document",
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
        "MongoDB: numbers that JSON does not have, in the older form",
        message(envelope("c", None, OLD_NUMBERS, MONGO, None), {"id": "1"}, "g.d.c"),
        ({"after": f'{{"_id":"1","document":{json.dumps(NUMBERS)}}}'},),
    ),
    Golden(
        "MongoDB: an update with changed fields only",
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
        "MongoDB: a deleted document",
        message(envelope("d", None, None, MONGO, None), {"id": "1"}, "g.d.c"),
        ({"op": "delete", "key_before": '["1"]', "key": None},),
    ),
]
