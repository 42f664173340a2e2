"""Transactions of MySQL proper: those that are logged before they are visible, and GTIDs with a tag."""

from __future__ import annotations

import threading

import pytest

from airflow_cdc_provider.connectors.sources.mysql.binlog import GTID_TAGGED, BinlogEvent
from airflow_cdc_provider.connectors.sources.mysql.gtids import parse_gtid
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.mysql_database import Shop, records
from tests.mariadb import embedded, mysql_only
from tests.waiting import until

RECORDED = (
    "027200000002d84034e8a903650222c503e502450204f103000000020404060a6d7974616708140a1c0c7f72e94f234761061091041283120b"
)
"""By MySQL 9.7.4, of a transaction with ``SET gtid_next = 'AUTOMATIC:mytag'``."""


def test_a_gtid_with_a_tag_is_read_as_the_server_recorded_it() -> None:
    event = BinlogEvent(GTID_TAGGED, 0, 1, "binlog.000001", 2062, 2142, bytes.fromhex(RECORDED))
    assert parse_gtid(event) == "6c201a74-ea99-11f1-b991-02fc00000001:mytag:1"


@pytest.mark.server
@mysql_only
def test_transactions_with_a_tag_are_read_and_waited_for(mariadb: EmbeddedMariaDB) -> None:
    shop = Shop(mariadb)
    shop.sql("CREATE TABLE t (id int PRIMARY KEY)")
    shop.window()
    shop.sql("SET gtid_next = 'AUTOMATIC:batch_7'", "INSERT INTO t VALUES (1)", "SET gtid_next = 'AUTOMATIC'")
    task = shop.task("t")
    (record,) = records(shop.window(task))
    assert record.tx_id == shop.position["gtid"] and ":batch_7:" in record.tx_id
    assert shop.status("t").limit and shop.copied(task)[1].keys() == {"[1]"}
    shop.sql("INSERT INTO t VALUES (2)")
    shop.window(task)
    assert ":batch_7:" not in shop.position["gtid"]


@pytest.mark.server
@mysql_only
def test_a_stream_begins_where_every_earlier_transaction_is_visible() -> None:
    """A transaction is in the binlog before it is visible: here a second before it, as a replica may cause."""
    with embedded(sync_binlog="2", binlog_group_commit_sync_delay="1000000") as server:
        shop, other = Shop(server), Shop(server)
        shop.sql("CREATE TABLE t (id int PRIMARY KEY)")
        missed = []
        for number in range(6):
            (before,) = other.ask("SHOW BINARY LOG STATUS")
            writer = threading.Thread(target=shop.sql, args=(f"INSERT INTO t VALUES ({number})",))
            writer.start()
            until(lambda end=before: other.ask("SHOW BINARY LOG STATUS") != [end], "a longer binlog", every_s=0.001)
            other.source.open_stream([])
            missed += [number] if (number,) not in other.ask(f"SELECT id FROM {shop.table('t')}") else []
            writer.join()
        assert missed == []
