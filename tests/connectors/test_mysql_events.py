"""Hand-made events of the binlog that no embedded server sends, and the effects of its statements."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from airflow_cdc_provider.connectors.source import Boundary, HoleFound, StreamItem
from airflow_cdc_provider.connectors.sources.mysql import binlog
from airflow_cdc_provider.connectors.sources.mysql.binlog import BinlogEvent, Query, read_events
from airflow_cdc_provider.connectors.sources.mysql.decode import BinlogDecoder
from airflow_cdc_provider.connectors.sources.mysql.decoder_settings import DecoderSettings
from airflow_cdc_provider.connectors.sources.mysql.gtids import parse_gtid
from airflow_cdc_provider.connectors.sources.mysql.positions import BinlogPosition, binlog_position, file_number
from airflow_cdc_provider.connectors.sources.mysql.statements import Effect, parse_statement
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import IntegrityBroken
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import TableState

SCHEMA = TableSchema("shop.t", (Column("id", LogicalType(Kind.INT32), False, "int(11)"),), ("id",))
TASK = TableTask("shop.t", "t", SCHEMA, TableRule("shop.t"), "0" * 64, TableState.REPLICATING)
MAP = (
    (9).to_bytes(6, "little") + b"\x01\x00" + b"\x04shop\x00" + b"\x01t\x00" + b"\x01\x03\x00\x00"
    + b"\x01\x01\x00" + b"\x04\x03\x02id" + b"\x08\x01\x00"
)  # fmt: skip
ROW = (9).to_bytes(6, "little") + b"\x01\x00\x02\x00" + b"\x01\xff" + b"\x00" + struct.pack("<i", -7)


def event(kind: int, start: int, body: bytes = b"", file: str = "log.000009") -> BinlogEvent:
    return BinlogEvent(kind, 1_767_225_600, 1, file, start, start + 19 + len(body), body)


def fed(*events: BinlogEvent) -> list[StreamItem]:
    decoder = BinlogDecoder([TASK], DecoderSettings({}, {}, False), 1, "", BinlogPosition(99, 0))
    for one in events:
        decoder.feed(one)
    return decoder.items


def query(start: int, text: bytes) -> BinlogEvent:
    return event(binlog.QUERY, start, struct.pack("<IIBHH", 1, 0, 0, 0, 0) + b"\0" + text)


def begin(start: int) -> BinlogEvent:
    return query(start, b"BEGIN")


def test_a_row_of_mysql_is_read_by_the_metadata_of_the_binlog() -> None:
    uuid = bytes.fromhex("3e11fa4771ca11e19e33c80aa9429562")
    gtid = event(binlog.GTID, 100, b"\x01" + uuid + struct.pack("<q", 23))
    assert parse_gtid(gtid) == "3e11fa47-71ca-11e1-9e33-c80aa9429562:23"
    schema, change, row, end = fed(gtid, begin(200), event(19, 300, MAP), event(30, 400, ROW), event(binlog.XID, 500))
    assert isinstance(schema, TableSchema) and schema == SCHEMA
    assert getattr(change, "op", "") == "schema"
    assert (getattr(row, "after", ""), getattr(row, "tx_id", "")) == ('{"id":-7}', parse_gtid(gtid))
    assert isinstance(end, Boundary)
    assert end.position == {"file": "log.000009", "pos": "519", "gtid": parse_gtid(gtid)}


@pytest.mark.parametrize("kind", [binlog.TRANSACTION_PAYLOAD, binlog.INCIDENT, 0, 10, 20, 43, 172])
def test_compressed_lost_and_unknown_events_are_a_hole_of_every_table(kind: int) -> None:
    hole, end = fed(event(kind, 100))
    assert isinstance(hole, HoleFound) and hole.table == "" and hole.kind == "untold"
    assert isinstance(end, Boundary)


def test_an_event_of_an_unknown_type_inside_a_transaction_does_not_end_it() -> None:
    hole, end = fed(begin(100), event(172, 300), event(binlog.XID, 500))
    assert isinstance(hole, HoleFound) and hole.table == ""
    assert isinstance(end, Boundary) and end.position["pos"] == "519"


def test_a_partial_json_update_is_a_hole_of_its_table() -> None:
    hole, end = fed(begin(100), event(19, 300, MAP), event(binlog.PARTIAL_UPDATE, 400, ROW), event(binlog.XID, 500))
    assert isinstance(hole, HoleFound) and hole.table == "shop.t" and "PARTIAL_JSON" in hole.detail
    assert isinstance(end, Boundary)


@pytest.mark.parametrize("text", [b"ROLLBACK", b"ROLLBACK TO s"])
def test_rows_that_are_logged_and_then_rolled_back_are_a_hole(text: bytes) -> None:
    """As a server logs rows of non-transactional tables in a transaction with others."""
    items = fed(begin(100), event(19, 300, MAP), event(30, 400, ROW), query(500, text), event(binlog.XID, 600))
    assert [one.table for one in items if isinstance(one, HoleFound)] == ["shop.t"]


def test_rows_of_a_transaction_cut_off_by_a_crash_are_a_hole() -> None:
    rotate = BinlogEvent(binlog.ROTATE, 0, 1, "log.000009", 519, 519, struct.pack("<Q", 4) + b"log.000010")
    *_, hole, end = fed(begin(100), event(19, 300, MAP), event(30, 400, ROW), rotate)
    assert isinstance(hole, HoleFound) and hole.detail == "the server ended in the middle of a transaction"
    assert isinstance(end, Boundary) and binlog_position(end.position) == BinlogPosition(10, 4)


def test_an_event_that_cannot_be_read_stops_the_stream_with_an_error_without_its_bytes() -> None:
    with pytest.raises(IntegrityBroken, match=r"SRC030.*log.000009, position 400") as caught:
        fed(begin(100), event(19, 300, MAP), event(30, 400, ROW[:-2] + b"secret"[:1]))
    assert "secret" not in str(caught.value)
    with pytest.raises(IntegrityBroken, match="rows without a table map"):
        fed(begin(100), event(30, 400, ROW))


def test_files_are_ordered_by_their_numbers() -> None:
    assert file_number("binlog.999999") < file_number("binlog.1000000")
    assert BinlogPosition(2, 4) < BinlogPosition(2, 5) < BinlogPosition(10, 4)
    with pytest.raises(ValueError, match="no number"):
        file_number("binlog")


class Packets:
    """The parts of a driver's connection that a stream uses."""

    def __init__(self, *packets: bytes) -> None:
        self.packets = [*packets, b"\xfe\0\0\0\0"]

    def cursor(self) -> Packets:
        return self

    def execute(self, _query: str) -> None: ...

    def fetchone(self) -> tuple[str]:
        return ("NONE",)

    def _execute_command(self, command: int, _body: bytes) -> None:
        assert command == binlog.DUMP

    def _read_packet(self) -> Packets:
        return self

    def get_all_data(self) -> bytes:
        return self.packets.pop(0)


def packet(kind: int, log_pos: int, size: int, flags: int = 0, body: bytes = b"") -> bytes:
    return b"\0" + struct.pack("<IBIIIH", 0, kind, 1, size, log_pos & 0xFFFFFFFF, flags) + body


def test_positions_continue_beyond_four_gibibytes_where_no_window_ends() -> None:
    start, wrap = (1 << 32) - 100, 1 << 32
    rotate = struct.pack("<Q", 4) + b"log.000010"
    connection: Any = Packets(
        packet(binlog.ROTATE, 0, 37, binlog.ARTIFICIAL, struct.pack("<Q", start) + b"log.000009"),
        packet(binlog.XID, wrap + 50, 150),
        packet(binlog.XID, wrap + 80, 30),
        packet(binlog.ROTATE, wrap + 117, 37, 0, rotate),
        packet(binlog.XID, 104, 100),
    )
    events = list(read_events(connection, 1, "log.000009", start))
    assert [(one.file, one.start, one.end) for one in events] == [
        ("log.000009", start, start),
        ("log.000009", start, wrap + 50),
        ("log.000009", wrap + 50, wrap + 80),
        ("log.000009", wrap + 80, wrap + 117),
        ("log.000010", 4, 104),
    ]
    ends = [binlog_position(item.position) for item in fed(*events) if isinstance(item, Boundary)]
    assert ends == [BinlogPosition(10, 4), BinlogPosition(10, 104)]


def test_a_backslash_ends_a_string_where_the_session_says_so() -> None:
    text = "ALTER TABLE t COMMENT = 'C:\\', DROP c, ADD d char DEFAULT 'x'"
    assert [len(parse_statement(Query("shop", text, escapes=one)).clauses) for one in (True, False)] == [1, 3]


@pytest.mark.parametrize(
    ("text", "means", "names"),
    [
        ("BEGIN", Effect.BEGIN, ""),
        ("XA START X'78',X'',1", Effect.BEGIN, ""),
        ("COMMIT", Effect.COMMIT, ""),
        ("ROLLBACK", Effect.ROLLBACK, ""),
        ("ROLLBACK TO `s`", Effect.ROLLBACK_TO_SAVEPOINT, ""),
        ("SAVEPOINT `s`", Effect.NONE, ""),
        ("truncate t", Effect.TRUNCATE, "shop.t"),
        ("TRUNCATE TABLE other.`t`", Effect.TRUNCATE, "other.t"),
        ("/* DROP TABLE t */ ALTER TABLE t ADD c int -- RENAME TO x", Effect.ALTER, "shop.t"),
        ("ALTER TABLE `a``b` RENAME COLUMN x TO y", Effect.ALTER, "shop.a`b"),
        ("ALTER TABLE t RENAME INDEX i TO j", Effect.ALTER, "shop.t"),
        ("ALTER TABLE t RENAME AS u", Effect.REPLACE_TABLE, "shop.u"),
        ("ALTER ONLINE TABLE t EXCHANGE PARTITION p WITH TABLE u", Effect.REPLACE_TABLE, "shop.u"),
        ("ALTER TABLE t ADD PARTITION (PARTITION p VALUES IN (1))", Effect.ALTER, "shop.t"),
        ("DROP TABLE IF EXISTS `shop`.`t` /* generated by server */", Effect.REPLACE_TABLE, "shop.t"),
        ("DROP TEMPORARY TABLE t", Effect.NONE, ""),
        ("DROP TABLES t, u", Effect.REPLACE_TABLE, "shop.u"),
        ("DROP TABLE temporary", Effect.REPLACE_TABLE, "shop.temporary"),
        ("ALTER TABLE temporary DROP c", Effect.ALTER, "shop.temporary"),
        ("CREATE OR REPLACE TEMPORARY TABLE t (id int)", Effect.NONE, ""),
        ("DROP DATABASE IF EXISTS `shop`", Effect.REPLACE_TABLE, "shop"),
        ("CREATE TABLE t (id int)", Effect.NONE, ""),
        ("CREATE OR REPLACE TABLE t (id int)", Effect.REPLACE_TABLE, "shop.t"),
        ("RENAME TABLE t TO old, new TO t", Effect.REPLACE_TABLE, "shop.new"),
        ("CREATE INDEX i ON t (c)", Effect.NONE, ""),
        ("UPDATE t SET c = 'DROP TABLE'", Effect.CHANGE_ROWS, "shop.t"),
        ("INSERT INTO Other.T VALUES (1)", Effect.CHANGE_ROWS, "other.t"),
        ("GRANT SELECT ON t TO x", Effect.NONE, ""),
        ("/*My application*/ TRUNCATE t", Effect.TRUNCATE, "shop.t"),
        ("--\nTRUNCATE t", Effect.TRUNCATE, "shop.t"),
        ("# one\n-- two\n/*!50001 TRUNCATE /* three */ TABLE t */", Effect.TRUNCATE, "shop.t"),
        ("/*M!100100 DROP TABLE t */", Effect.REPLACE_TABLE, "shop.t"),
        ("DROP /*!40005 TEMPORARY */ TABLE t", Effect.NONE, ""),
        ("/*!40000 ALTER TABLE t DISABLE KEYS */", Effect.ALTER, "shop.t"),
        ("SET STATEMENT max_statement_time = 0, sql_mode = '' FOR TRUNCATE t", Effect.TRUNCATE, "shop.t"),
        ("SET STATEMENT max_statement_time = 0 FOR ALTER TABLE t DROP c", Effect.ALTER, "shop.t"),
        ("SET PASSWORD FOR x = 'y'", Effect.NONE, ""),
        ("ALTER TABLE t CONVERT PARTITION p TO TABLE u", Effect.REPLACE_TABLE, "shop.t"),
        ("ALTER TABLE t CONVERT TABLE u TO PARTITION p VALUES LESS THAN (9)", Effect.REPLACE_TABLE, "shop.t"),
        ("ALTER TABLE t REPAIR PARTITION p", Effect.REPLACE_TABLE, "shop.t"),
        ("REPAIR TABLE t", Effect.CHANGE_ROWS, "shop.t"),
        ("ALTER TABLE t CONVERT TO CHARACTER SET latin1", Effect.ALTER, "shop.t"),
        ("REPLACE_ALL_ROWS OF t", Effect.CHANGE_ROWS, "shop.t"),
        ("", Effect.NONE, ""),
    ],
)
def test_the_effect_of_a_statement(text: str, means: Effect, names: str) -> None:
    statement = parse_statement(Query("shop", text))
    assert statement.effect is means
    assert not names or names in statement.tables


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("INSERT LOW_PRIORITY IGNORE INTO `o.o`.t VALUES (1)", '"o.o".t'),
        ("REPLACE t SET a = 1", "shop.t"),
        ("UPDATE IGNORE t SET a = 1", "shop.t"),
        ("UPDATE t, u SET a = 1", None),
        ("UPDATE t JOIN u SET a = 1", None),
        ("DELETE QUICK FROM other.t WHERE a = 1", "other.t"),
        ("DELETE FROM t", "shop.t"),
        ("DELETE FROM t, u USING t JOIN u", None),
        ("DELETE t FROM t JOIN u", None),
        ("LOAD DATA LOCAL INFILE 'x' IGNORE INTO TABLE t (a)", "shop.t"),
        ("WITH q AS (SELECT 1) UPDATE t SET a = 1", None),
        ("CALL p()", None),
        ("SELECT f()", None),
    ],
)
def test_the_only_table_that_a_statement_writes_by_itself(text: str, table: str | None) -> None:
    write = parse_statement(Query("shop", text)).write
    assert write is not None and write.table == table


@pytest.mark.parametrize(
    ("text", "confined"),
    [
        (
            "INSERT INTO mysql.rds_heartbeat2(id, value) values (1,1796000000000) ON DUPLICATE KEY UPDATE "
            "value = 1796000000000",
            True,
        ),
        ("DELETE FROM mysql.rds_sysinfo where name = 'innodb_txn_key'", True),
        ("INSERT INTO mysql.rds_history (called_by_user, action) values (user(), 'x')", True),
        ("REPAIR TABLE t", True),
        ("INSERT INTO mysql.rds_history VALUES (f())", False),
        ("INSERT INTO mysql.rds_history SELECT * FROM v", False),
        ("INSERT INTO shop.t VALUES (1)", False),
        ("UPDATE mysql.a, t SET n = 1", False),
    ],
)
def test_a_statement_that_operators_of_servers_log_as_text_is_confined(text: str, confined: bool) -> None:
    """RDS writes its heartbeat every five minutes, and no login needs further privileges for it."""
    write = parse_statement(Query("mysql", text)).write
    assert write is not None and write.is_confined is confined
