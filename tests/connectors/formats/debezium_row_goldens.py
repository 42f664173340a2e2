"""Rows in Debezium's envelopes and their meaning, after its documentation and after recorded messages."""

from __future__ import annotations

from dataclasses import replace

from tests.connectors.formats.debezium_messages import (
    KEYLESS,
    PG_AT,
    PLACEHOLDER,
    S,
    envelope,
    field,
    key_schema,
    message,
    mysql,
    pg,
    with_schema,
)
from tests.connectors.formats.golden import Golden, key_of

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
        "the new half of a key change, without header, recognised by its missing value",
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
        "an update under REPLICA IDENTITY FULL, whose old row has the wide column",
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
        "an insert in the first transaction of the stream",
        message(
            envelope("c", None, {"id": 3, "v": "", "at": None}, pg(sequence='[null,"500"]', lsn=500), None), {"id": 3}
        ),
        (
            {
                "op": "insert",
                "order_key": key_of("00000000000001f4 00000000000001f4 0000000000000000 01"),
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
        "a row of an incremental copy, which has no position",
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
        "one of two equal rows that COPY inserted into a table without key",
        message(envelope("c", None, {"v": "x"}, pg(table="n"), 2), None, "srv.inv.n"),
        ({"op": "insert", "key": None, "order_key": key_of(f"{PG_AT} 0000000000000002 01"), "after": '{"v":"x"}'},),
        KEYLESS,
    ),
    Golden(
        "the same without transaction metadata: the offset distinguishes them",
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
        "a table that is not copied",
        message(envelope("c", None, {"id": 1}, pg(table="other"))),
        (),
        S,
        ignored=1,
    ),
    Golden(
        "a row with its schema: columns and key are known",
        message(
            with_schema(envelope("c", None, {"id": 3, "v": "x"}, pg()), field("id", "int32"), field("v", "string")),
            key_schema({"id": 3}),
        ),
        ({"op": "insert", "key": "[3]", "after": '{"id":3,"v":"x"}', "after_complete": True},),
    ),
    Golden(
        "an old envelope: no microseconds, and null for members that newer ones omit",
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
                "order_key": key_of("00000000000f4240 000000000000100a 00000002 0000000000000007 00"),
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
        "an update whose message has no key, and that changes the key of the definition",
        message(envelope("u", {"id": 1, "v": "a", "at": None}, {"id": 2, "v": "a", "at": None}, mysql(), None)),
        (
            {"op": "delete", "key_before": "[1]", "key": None, "phase": 0},
            {"op": "insert", "key_before": None, "key": "[2]", "phase": 1},
        ),
        replace(S, table="shop.t"),
    ),
    Golden(
        "an update whose message has no key and no row before",
        message(envelope("u", None, {"id": 2, "v": "a", "at": None}, pg())),
        ({"op": "update", "key_before": "[2]", "key": "[2]"},),
        S,
    ),
    Golden(
        "MySQL: a row of an incremental copy is ordered after the change at its position",
        message(
            with_schema(envelope("r", None, {"id": 1}, mysql(snapshot="incremental"), None), field("id", "int32")),
            key_schema({"id": 1}),
            "m.shop.t",
        ),
        (
            {
                "op": "read",
                "order_key": key_of("00000000000f4240 000000000000100a ffffffff 0000000000000000 01"),
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
