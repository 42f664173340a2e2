"""Records of YDB changefeeds and their meaning, after its documentation and its own tests."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.core.table.schema import Kind, TableSchema
from tests.connectors.formats.golden import Golden, as_json, column, key_of

T = TableSchema(
    "shop/orders",
    (
        column("id", Kind.DECIMAL, "Uint64", 20, 0),
        column("k", Kind.TEXT, "Utf8"),
        column("v", Kind.DECIMAL, "Uint64", 20, 0),
        column("w", Kind.TEXT, "Utf8"),
    ),
    ("id", "k"),
)
ONE = TableSchema("shop/orders", (column("id", Kind.INT32, "Int32"), column("v", Kind.TEXT, "Utf8")), ("id",))
TYPES = TableSchema(
    "shop/orders",
    (
        column("id", Kind.BYTES, "String"),
        column("a", Kind.BOOLEAN, "Bool"),
        column("b", Kind.INT16, "Uint8"),
        column("c", Kind.FLOAT64, "Double"),
        column("d", Kind.DECIMAL, "Decimal(22,9)", 22, 9),
        column("e", Kind.TEXT, "DyNumber"),
        column("f", Kind.DATE, "Date"),
        column("g", Kind.TIMESTAMPTZ, "Datetime"),
        column("h", Kind.TIMESTAMPTZ, "Timestamp"),
        column("i", Kind.INT64, "Interval"),
        column("j", Kind.DATE, "Date32"),
        column("l", Kind.TIMESTAMPTZ, "Datetime64"),
        column("m", Kind.TIMESTAMPTZ, "Timestamp64"),
        column("n", Kind.UUID, "Uuid"),
        column("o", Kind.JSON, "JsonDocument"),
        column("p", Kind.TEXT, "pgint4"),
        column("q", Kind.FLOAT32, "Float"),
        column("r", Kind.DATE, "Optional<Date>"),
    ),
    ("id",),
)
ITEMS = TableSchema(
    "shop/orders", (column("id", Kind.INT64), column("v", Kind.TEXT), column("document", Kind.JSON)), ("id",)
)
TOPIC = "/shop/orders/feed"


def message(value: object, key: object = None, offset: int = 9) -> Message:
    body = value if isinstance(value, bytes) else as_json(value)
    return Message(body, None if key is None else as_json(key), topic=TOPIC, channel=f"{TOPIC}/0", offset=offset)


def debezium(op: str, key: dict[str, Any] | None = None, **rows: Any) -> Message:
    source = {"version": "1.0.0", "connector": "ydb", "ts_ms": 5, "snapshot": op == "r", "step": 5, "txId": 6}
    return message({"payload": {"op": op, **rows, "source": source}}, {"payload": key or {"id": 1}})


def stream_record(name: str, **more: Any) -> Message:
    body = {
        "ApproximateCreationDateTime": 1700000000000,
        "SequenceNumber": "000000000000000000042",
        "Keys": {"id": {"N": "1"}},
        "StreamViewType": "NEW_AND_OLD_IMAGES",
        **more,
    }
    return message(
        {
            "awsRegion": "ru",
            "dynamodb": body,
            "eventID": "1-42",
            "eventName": name,
            "eventSource": "ydb:document-table",
            "eventVersion": "1.0",
            "userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"},
        }
    )


AT = "0000000000000005 0000000000000007 0000000000000009"
NOWHEN = "0000000000000000 0000000000000000 0000000000000009"

GOLDENS = [
    Golden(
        "an update that names its columns",
        message({"key": [1, "a"], "update": {"v": 18446744073709551615}, "ts": [5, 7]}),
        (
            {
                "table": "shop/orders",
                "op": "upsert",
                "order_key": key_of(f"{AT} 01"),
                "key": '["1","a"]',
                "after": '{"id":"1","k":"a","v":"18446744073709551615"}',
                "after_complete": False,
                "refetch": (),
                "tx_id": "5:7",
            },
        ),
        T,
    ),
    Golden(
        "a reset: columns that it does not contain become NULL",
        message({"key": [1], "reset": {"v": "x"}, "ts": [5, 7]}),
        ({"op": "replace", "key": "[1]", "after": '{"id":1,"v":"x"}', "after_complete": True},),
        ONE,
    ),
    Golden(
        "an erase",
        message({"key": [1], "erase": {}, "ts": [5, 7]}),
        ({"op": "delete", "order_key": key_of(f"{AT} 00"), "key_before": "[1]", "key": None, "before": None},),
        ONE,
    ),
    Golden(
        "a new image",
        message({"key": [1], "update": {}, "newImage": {"v": "x"}}),
        (
            {
                "op": "upsert",
                "order_key": key_of(f"{NOWHEN} 01"),
                "after": '{"id":1,"v":"x"}',
                "after_complete": True,
                "refetch": (),
                "tx_id": None,
            },
        ),
        ONE,
    ),
    Golden(
        "a new image of a feed with old images",
        message({"key": [1], "update": {}, "newImage": {"v": "x"}}),
        ({"op": "insert"},),
        ONE,
        {"mode": "NEW_AND_OLD_IMAGES"},
    ),
    Golden(
        "both images",
        message({"key": [1], "update": {}, "newImage": {"v": "2"}, "oldImage": {"v": "1"}}),
        (
            {
                "op": "update",
                "key_before": "[1]",
                "before": '{"id":1,"v":"1"}',
                "before_complete": True,
                "after": '{"id":1,"v":"2"}',
                "after_complete": True,
            },
        ),
        ONE,
    ),
    Golden(
        "a reset of a feed with images",
        message({"key": [1], "reset": {}, "newImage": {"v": None}, "oldImage": {"v": "1"}}),
        ({"op": "update", "after": '{"id":1,"v":null}', "after_complete": True},),
        ONE,
    ),
    Golden(
        "an erase with the row before",
        message({"key": [1], "erase": {}, "oldImage": {"v": "1"}}),
        ({"op": "delete", "key_before": "[1]", "before": '{"id":1,"v":"1"}', "before_complete": True},),
        ONE,
    ),
    Golden(
        "an update of a feed of keys: the row must be fetched",
        message({"key": [1], "update": {}}),
        ({"op": "upsert", "after": '{"id":1}', "after_complete": False, "refetch": ("*",)},),
        ONE,
        {"mode": "KEYS_ONLY"},
    ),
    Golden(
        "a reset of a feed of keys",
        message({"key": [1], "reset": {}}),
        ({"op": "upsert", "after": '{"id":1}', "refetch": ("*",)},),
        ONE,
        {"mode": "KEYS_ONLY"},
    ),
    Golden(
        "an empty reset of an undescribed feed empties no row",
        message({"key": [1], "reset": {}}),
        ({"op": "upsert", "after": '{"id":1}', "refetch": ("*",)},),
        ONE,
    ),
    Golden(
        "an empty reset of a feed of updates does",
        message({"key": [1], "reset": {}}),
        ({"op": "replace", "after": '{"id":1}', "refetch": ()},),
        ONE,
        {"mode": "UPDATES"},
    ),
    Golden(
        "an update of a feed of old images",
        message({"key": [1], "update": {}, "oldImage": {"v": "1"}}),
        ({"op": "upsert", "before": '{"id":1,"v":"1"}', "refetch": ("*",)},),
        ONE,
        {"mode": "OLD_IMAGE"},
    ),
    Golden(
        "a row of its key only",
        message({"key": [1], "update": {}}),
        ({"op": "upsert", "after": '{"id":1}', "refetch": ()},),
        ONE,
        {"mode": "UPDATES"},
    ),
    Golden(
        "a row of a copy, with the time of the copy and the user",
        message({"key": [1], "update": {}, "newImage": {"v": "x"}, "ts": [5, 7], "user": "me@builtin"}),
        ({"op": "upsert", "position": '{"ts":[5,7],"user":"me@builtin","channel":"/shop/orders/feed/0","offset":9}'},),
        ONE,
    ),
    Golden(
        "a barrier",
        message({"resolved": [5, 0]}),
        (
            {
                "op": "barrier",
                "order_key": key_of("0000000000000005 0000000000000000 0000000000000000 00"),
                "after": '{"resolved":[5,0],"channel":"/shop/orders/feed/0"}',
            },
        ),
        ONE,
    ),
    Golden(
        "a schema, early form",
        message(
            {
                "tableChanges": [
                    {"table": {"schemaVersion": 3, "columns": {"id": "Int32"}, "primaryKeyColumnNames": "id"}}
                ],
                "ts": [5, 7],
            }
        ),
        (
            {
                "op": "schema",
                "order_key": key_of("0000000000000005 0000000000000007 0000000000000000 00"),
                "event_id": "shop/orders:schema:3",
                "after": '{"table":"shop/orders","columns":[{"name":"id","type":{"kind":"int32","precision":null,'
                '"scale":null},"nullable":true,"native":"Int32","initial":null}],"key":["id"],"regime":"single"}',
            },
        ),
        ONE,
    ),
    Golden(
        "a schema, later form",
        message(
            {
                "tableChanges": [
                    {
                        "table": {
                            "schemaVersion": 4,
                            "columns": {"id": {"type": "Int32", "family": "default"}, "d": {"type": "Decimal(35,10)"}},
                            "primaryKeyColumnNames": ["id"],
                            "columnFamilies": {"default": {"compression": "off"}},
                        }
                    }
                ],
                "ts": [5, 7],
            }
        ),
        ({"op": "schema", "event_id": "shop/orders:schema:4"},),
        ONE,
    ),
    Golden(
        "every type",
        message(
            b'{"key":["AQI="],"update":{},"newImage":{"a":true,"b":255,"c":-0.10000000000000001,"d":"-3.321",'
            b'"e":".3321e1","f":"2020-08-12T00:00:00.000000Z","g":"2020-08-12T07:00:00.000000Z",'
            b'"h":"2020-08-12T07:00:00.123456Z","i":-5,"j":-719162,"l":1600000000,"m":1600000000000001,'
            b'"n":"65df1ec1-a97d-47b2-ae56-3c023da6ee8c","o":{"k":[1,1.50,null]},"p":"42","q":"-inf","r":"2022-02-22"}}'
        ),
        (
            {
                "key": '["AQI="]',
                "after": '{"id":"AQI=","a":true,"b":255,"c":-0.1,"d":"-3.321000000","e":".3321e1",'
                '"f":"2020-08-12","g":"2020-08-12T07:00:00Z","h":"2020-08-12T07:00:00.123456Z","i":-5,'
                '"j":"0001-01-01","l":"2020-09-13T12:26:40Z","m":"2020-09-13T12:26:40.000001Z",'
                '"n":"65df1ec1-a97d-47b2-ae56-3c023da6ee8c","o":"{\\"k\\":[1,1.50,null]}","p":"42","q":"-Infinity",'
                '"r":"2022-02-22"}',
                "after_complete": True,
                "warnings": (),
            },
        ),
        TYPES,
    ),
    Golden(
        "Debezium's form: an inserted row",
        debezium("c", after={"id": 1, "v": "x"}),
        (
            {
                "op": "insert",
                "order_key": key_of("0000000000000005 0000000000000006 0000000000000009 01"),
                "key": "[1]",
                "after": '{"id":1,"v":"x"}',
                "after_complete": True,
                "tx_id": "5:6",
            },
        ),
        ONE,
    ),
    Golden(
        "Debezium's form: an update",
        debezium("u", before={"id": 1, "v": "x"}, after={"id": 1, "v": "y"}),
        ({"op": "update", "before": '{"id":1,"v":"x"}', "after": '{"id":1,"v":"y"}'},),
        ONE,
    ),
    Golden("Debezium's form: an update of keys", debezium("u"), ({"op": "upsert", "refetch": ("*",)},), ONE),
    Golden("Debezium's form: a delete", debezium("d"), ({"op": "delete", "key_before": "[1]", "key": None},), ONE),
    Golden(
        "Debezium's form: a row of a copy",
        debezium("r", after={"id": 1, "v": "x"}),
        ({"op": "read", "snapshot": "scan"},),
        ONE,
    ),
    Golden(
        "Debezium's old form: a reset, and its position",
        message(
            {
                "payload": {
                    "op": "s",
                    "after": {"id": 1, "v": None},
                    "ts": [5, 6],
                    "source": {"version": "0.0.1", "connector": "ydb_debezium_json", "ts_ms": 5, "txId": 6},
                }
            },
            {"payload": {"id": 1}},
        ),
        ({"op": "upsert", "after": '{"id":1,"v":null}', "after_complete": True, "tx_id": "5:6"},),
        ONE,
    ),
    Golden(
        "DynamoDB's form: an inserted item",
        stream_record("INSERT", NewImage={"id": {"N": "1"}, "v": {"S": "x"}, "l": {"L": [{"BOOL": True}]}}),
        (
            {
                "op": "insert",
                "order_key": key_of("0000 0000000000000000000000000000000000000042 01"),
                "key": "[1]",
                "after": '{"id":1,"v":"x","document":"{\\"id\\":{\\"N\\":\\"1\\"},\\"v\\":{\\"S\\":\\"x\\"},'
                '\\"l\\":{\\"L\\":[{\\"BOOL\\":true}]}}"}',
                "after_complete": True,
                "event_id": "1-42",
            },
        ),
        ITEMS,
    ),
    Golden(
        "DynamoDB's form: a change",
        stream_record("MODIFY", NewImage={"id": {"N": "1"}}, OldImage={"id": {"N": "1"}, "v": {"NULL": True}}),
        ({"op": "update", "key_before": "[1]", "key": "[1]", "before_complete": True, "after_complete": True},),
        ITEMS,
    ),
    Golden(
        "DynamoDB's form: a change of a feed of keys",
        stream_record("MODIFY"),
        ({"op": "upsert", "key_before": None, "after": '{"id":1}', "refetch": ("*",)},),
        ITEMS,
    ),
    Golden(
        "DynamoDB's form: a deleted item of an undescribed table",
        stream_record("REMOVE", OldImage={"id": {"N": "1"}}),
        (
            {
                "op": "delete",
                "key_before": '["1"]',
                "before": '{"id":"1","document":"{\\"id\\":{\\"N\\":\\"1\\"}}"}',
                "before_complete": True,
            },
        ),
    ),
]
