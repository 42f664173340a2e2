"""Saved files of the binlog give the records of the stream."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_cdc_provider.connectors.source import Boundary, StreamItem
from airflow_cdc_provider.connectors.sources.mysql import binlog
from airflow_cdc_provider.connectors.sources.mysql.binlog_files import MAGIC, decode_file
from airflow_cdc_provider.core.errors import CommandRefused
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.schema import TableSchema
from tests.connectors.mysql_database import Shop, records
from tests.mariadb import embedded

NAMELESS = b"\x09\0\0\0\0\0\x01\0\x04shop\0\x01t\0\x01\x03\0\0"


def stored(kind: int, at: int, body: bytes) -> bytes:
    return struct.pack("<IBIIIH", 1_767_225_600, kind, 1, 19 + len(body), at + 19 + len(body), 0) + body


def summaries(items: list[StreamItem]) -> list[tuple[str, ...]]:
    return [(one.op, one.order_key, one.key or "", one.after or "", one.before or "") for one in records(items)]


@pytest.fixture
def shop() -> Iterator[Shop]:
    with embedded() as server:
        yield Shop(server)


@pytest.mark.server
def test_a_file_gives_the_records_of_the_stream(shop: Shop) -> None:
    shop.sql(
        "CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, name VARCHAR(20), price DECIMAL(10,2), at DATETIME(3), raw BLOB)",
        "INSERT INTO t VALUES (1, 'Ünï', 1.50, '2026-01-02 03:04:05.678', x'00ff'), (2, NULL, NULL, NULL, NULL)",
        "UPDATE t SET id = 3, name = 'moved' WHERE id = 2",
        "DELETE FROM t WHERE id = 1",
        "TRUNCATE TABLE t",
    )
    file = Path(shop.server.data, shop.position["file"])
    streamed = summaries(shop.window(shop.task("t")))
    items = list(decode_file("mysql", str(file), file.read_bytes(), None, {}))
    ours = [one for one in items if getattr(one, "table", shop.table("t")) == shop.table("t")]
    assert [one for one in summaries(ours) if one[1] >= streamed[0][1]] == streamed and len(streamed) == 6
    assert any(isinstance(one, Boundary) for one in items)
    (schema,) = {one.schema_id: one for one in ours if isinstance(one, TableSchema)}.values()
    assert schema.key == ("id",) and schema.names == ("id", "name", "price", "at", "raw")

    cut = list(decode_file("mysql", str(file), file.read_bytes()[:-9], [to_plain(schema)], {}))
    assert summaries(cut) == summaries(ours)[: len(summaries(cut))], "an unfinished file may end anywhere"
    assert {one.table for one in cut if isinstance(one, ChangeRecord)} <= {schema.table}


def test_rows_of_a_transaction_keep_their_order_although_the_server_gives_no_offsets_inside_it() -> None:
    """The golden is a file of MariaDB 11.8.9: the ends of events inside a transaction are 0."""
    golden = json.loads(Path(__file__).with_name("mariadb_binlog_golden.json").read_text())
    items = list(decode_file("mysql", "binlog.000002", bytes.fromhex(golden["file"]), None, {}))
    changes = records(items)
    assert [f"{one.op} {one.key or one.key_before}" for one in changes] == [
        "insert [1]", "insert [2]", "update [1]", "update [1]", "delete [2]", "insert [3]",
    ]  # fmt: skip
    assert [json.loads(one.after or "")["word"] for one in changes if one.op == "update"] == ["c", "d"]
    keys = [one.order_key for one in changes]
    assert keys == sorted(set(keys)), "in their order, and each its own"
    ends = [int(item.position["pos"]) for item in items if isinstance(item, Boundary)]
    assert ends == [468, 678, 1435, 1668, 4]


def test_a_file_without_names_of_columns_is_refused_with_a_remedy() -> None:
    with pytest.raises(CommandRefused, match="binlog_row_metadata"):
        list(decode_file("mysql", "log.000009", MAGIC + stored(19, 4, NAMELESS), None, {}))


def test_an_encrypted_file_is_refused_and_one_that_the_server_sent_is_read() -> None:
    """MariaDB sends the announcement of the encryption, and then its events without encryption."""
    announced = MAGIC + stored(binlog.MARIADB_ENCRYPTION, 4, bytes(17))
    sent = announced + stored(binlog.XID, len(announced), bytes(8))
    assert [type(one) for one in decode_file("mysql", "log.000001", sent, None, {})] == [Boundary]
    with pytest.raises(CommandRefused, match="encrypted"):
        list(decode_file("mysql", "log.000001", announced + bytes(range(100, 140)), None, {}))


def test_a_file_that_is_no_binlog_is_refused() -> None:
    with pytest.raises(CommandRefused, match="not a binlog file"):
        list(decode_file("mysql", "log.000009", b'{"a":1}', None, {}))
