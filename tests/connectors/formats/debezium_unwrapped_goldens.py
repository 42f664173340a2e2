"""Rows without their envelopes and their meaning, after Debezium's documentation."""

from __future__ import annotations

from tests.connectors.formats.debezium_messages import S, key_schema, message
from tests.connectors.formats.golden import Golden, key_of

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
        "an unwrapped delete of a table whose schema is only in its messages",
        message(None, key_schema({"id": 1})),
        ({"op": "delete", "key_before": "[1]", "after": None},),
        None,
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
