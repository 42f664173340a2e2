"""The servers behind the messages of MySQL's and MariaDB's connectors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from airflow_cdc_provider.connectors.decoders.common.message import Message, MessageColumns
from airflow_cdc_provider.connectors.decoders.debezium.servers import Servers
from airflow_cdc_provider.core.log.server_orders import ServerOrder, join_orders

A, B = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "b0f2a5d4-71ca-11e1-9e33-c80aa9429562"


def source(file: str, pos: int, gtid: str | None, **others: Any) -> dict[str, Any]:
    block = {"connector": "mysql", "db": "d", "table": "t", "snapshot": "false", "server_id": 1}
    return {**block, "file": file, "pos": pos, "gtid": gtid, **others}


def watched(*sources: dict[str, Any], at_ms: int = 1) -> list[ServerOrder]:
    """The same from JSON, whatever blanks it has, and from columns."""
    found = [watched_once(sources, at_ms, separators) for separators in ((",", ":"), (", ", ": "))]
    assert found[0] == found[1]
    return found[0]


def envelope(source: dict[str, Any]) -> dict[str, Any]:
    return {"after": {"id": 1}, "source": source, "op": "c"}


def watched_once(sources: Sequence[dict[str, Any]], at_ms: int, separators: tuple[str, str]) -> list[ServerOrder]:
    messages = [
        Message(json.dumps(envelope(one), separators=separators).encode(), None, (), "p", "p/0", at, at_ms)
        for at, one in enumerate(sources, 5)
    ]
    as_json, as_columns = (Servers(lambda table: table if table != "d.other" else "") for _ in range(2))
    for message in messages:
        as_json.observe(message)
    values = pa.array([{"source": one} for one in sources])
    as_columns.observe_columns(MessageColumns(messages, values, values, "", ""))
    assert as_json.orders == as_columns.orders
    return list(as_json.orders)


def back(*sources: dict[str, Any]) -> list[str]:
    return [server for order in join_orders([], watched(*sources)) for server in order.back]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (source("b.000009", 50, f"{A}:9"), source("b.000003", 70, f"{B}:1")),
        (source("b.000009", 50, f"{A}:tag:9"), source("b.000009", 49, f"{A}:2")),
        (source("b.000009", 50, "0-1-9", connector="mariadb"), source("b.000003", 70, "0-2-10", connector="mariadb")),
        (source("b.000009", 50, f"{A}:9"), source("b.000003", 70, f"{A}:10")),
        (source("b.000009", 50, None), source("b.000003", 70, None, server_id=2)),
        (source("mysql-bin.000009", 50, None), source("binlog.000003", 70, None)),
    ],
)
def test_a_failover_to_lower_positions_is_found(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert len(back(before, after)) == 1
    assert back({**before, "table": "u"}, after) == [], "of another table"
    assert back(before, {**after, "snapshot": "incremental"}) == []
    assert back(before, {**after, "file": "b.1000000"}) == []


def test_a_restarted_connector_is_no_failover() -> None:
    sent = [source("b.000009", at, f"{A}:{at}") for at in (10, 20, 30)]
    assert back(*sent, *sent[1:], source("b.000009", 40, f"{A}:40")) == []
    without = [{**one, "gtid": None} for one in sent]
    assert back(*without, *without[1:]) == []


def test_only_copied_tables_are_watched_and_files_have_one_channel() -> None:
    (order,) = watched(source("b.1", 1, None), source("b.1", 2, None, table="other"))
    assert (order.channel, order.table, order.start) == ("p/0", "d.t", 5)
    (order,) = watched(source("b.1", 1, None), at_ms=0)
    assert (order.channel, order.start) == ("", 0)


def test_messages_of_other_connectors_have_no_servers() -> None:
    assert watched({"connector": "sqlserver", "db": "d", "schema": "s", "table": "t", "commit_lsn": "1:2:3"}) == []


def wal(previous: int | None, lsn: int, at_ms: int, tx: int = 7, **others: Any) -> dict[str, Any]:
    """A change of PostgreSQL in a transaction that was committed at a time."""
    sequence = json.dumps([None if previous is None else str(previous), str(lsn)], separators=(",", ":"))
    block = {"version": "3.5.0.Final", "connector": "postgresql", "name": "p", "ts_ms": at_ms, "snapshot": "false"}
    block |= {"db": "d", "sequence": sequence, "ts_us": at_ms * 1000, "schema": "public", "table": "t"}
    return {**block, "txId": tx, "lsn": lsn, **others}


def restarts(*sources: dict[str, Any]) -> list[str]:
    return [server for order in join_orders([], watched(*sources)) for server in order.restarts.values()]


SENT = [
    wal(None, 900, 100, 1),
    wal(None, 910, 100, 1),
    wal(920, 950, 120, 2),
    wal(960, 940, 110, 3),  # it wrote before the other one was committed; the clock of the server went back
    wal(980, 985, 130, 4),
]


def test_a_restored_server_of_postgresql_is_found() -> None:
    assert back(*SENT, wal(500, 510, 900, 9)) == ["p, database d"]
    assert back(*SENT, wal(500, 510, 900, 9, table="u")) == [], "of another table"
    assert back(*SENT, wal(500, 510, 900, 9, snapshot="incremental")) == []
    assert back(*SENT, wal(1000, 970, 900, 9)) == [], "a transaction that began before others ended"


@pytest.mark.parametrize("again", range(len(SENT)))
def test_a_connector_of_postgresql_may_send_changes_again(again: int) -> None:
    """After a restart; without any offsets, from its first transaction on."""
    sent = [*SENT, *SENT[again:], wal(990, 995, 140, 5)]
    assert back(*sent) == restarts(*sent) == []
    for cut in range(1, len(sent)):
        parts = watched(*sent[:cut]), watched(*sent[cut:])
        (order,) = join_orders(parts[0], parts[1])
        assert (order.back, order.restarts) == ({}, {}), cut


def test_a_connector_of_postgresql_that_starts_without_offsets_is_found() -> None:
    start = wal(None, 4000, 900, 9)
    assert restarts(*SENT, start) == ["p, database d"]
    (order,) = join_orders(watched(*SENT), watched(start, wal(4100, 4200, 910, 10)))
    assert list(order.restarts.values()) == ["p, database d"]
    (order,) = join_orders([order], watched(wal(4300, 4400, 920, 11), start))
    assert order.restarts == {}, "it was found once, and is sent again"


def test_a_first_transaction_after_a_copy_or_another_first_one_is_legal() -> None:
    """A connector that stops after its first transaction has not stored the end of it."""
    copied = wal(None, 890, 90, 0, snapshot="last")
    assert restarts(copied, *SENT) == []
    assert restarts(*SENT[:2], wal(None, 1000, 120, 2), wal(1010, 1020, 130, 3)) == []


def test_a_connector_that_sends_no_ends_of_transactions_has_no_server() -> None:
    assert watched(wal(1, 2, 3, sequence=None)) == []


def test_changes_have_the_connectors_and_databases_that_they_come_from() -> None:
    eu, us = wal(900, 910, 100), wal(920, 930, 110, name="q")
    (order,) = watched(eu, us, {**us, "db": "e"})
    assert order.origins == ("p, database d", "q, database d", "q, database e")
    (order,) = join_orders(watched(eu), watched(us))
    assert order.origins == ("p, database d", "q, database d")
    assert watched(source("b.1", 1, None, name="m"))[0].origins == ("m, database d",)
