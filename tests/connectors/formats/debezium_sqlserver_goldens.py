"""Changes of SQL Server, whose change tables have NULL for values that they do not contain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.core.table.schema import Kind, TableSchema
from tests.connectors.formats.debezium_messages import PLACEHOLDER, envelope, message
from tests.connectors.formats.golden import Golden, column

COLUMNS = (
    column("id", Kind.INT32, "int32", nullable=False),
    column("v", Kind.TEXT, "string"),
    column("at", Kind.TIMESTAMP, "int64 io.debezium.time.MicroTimestamp"),
)
TABLE = TableSchema("d.dbo.t", COLUMNS, ("id",))
KEYLESS = TableSchema("d.dbo.t", COLUMNS)
SOURCE = {
    "connector": "sqlserver",
    "ts_ms": 1,
    "snapshot": "false",
    "db": "d",
    "schema": "dbo",
    "table": "t",
    "change_lsn": "00000025:00000728:0002",
    "commit_lsn": "00000025:00000728:0003",
    "event_serial_no": 2,
}


def change(name: str, before: Any, after: Any, expected: Mapping[str, Any], **options: Any) -> Golden:
    """``before`` and ``after``: the value of the text column; False where there is no row."""
    rows = [None if value is False else {"id": 1, "v": value, "at": None} for value in (before, after)]
    sent = envelope("d" if after is False else "u", *rows, SOURCE, None)
    return Golden(name, message(sent, {"id": 1}, "s.d.dbo.t"), (expected,), TABLE, options)


SQL_SERVER = [
    change(
        "an update with a text that is null before and after: it is large and unchanged, or it is NULL and unchanged",
        None,
        None,
        {
            "before": '{"id":1,"at":null}',
            "before_complete": False,
            "after": '{"id":1,"at":null}',
            "after_complete": False,
        },
    ),
    change(
        "an update of a text to NULL",
        "x",
        None,
        {"before": '{"id":1,"v":"x","at":null}', "after": '{"id":1,"v":null,"at":null}', "after_complete": True},
    ),
    change(
        "an update of a text that is not in the row before",
        None,
        "x",
        {"before_complete": False, "after": '{"id":1,"v":"x","at":null}', "after_complete": True},
    ),
    change(
        "an update whose placeholder meets a null in the row before",
        None,
        PLACEHOLDER,
        {"after": '{"id":1,"at":null}', "after_complete": False},
    ),
    change(
        "a delete whose row lacks a text",
        None,
        False,
        {"op": "delete", "before": '{"id":1,"at":null}', "before_complete": False},
    ),
    change(
        "an update of a table without large values",
        None,
        None,
        {"before_complete": True, "after": '{"id":1,"v":null,"at":null}', "after_complete": True},
        full_before=True,
    ),
]
