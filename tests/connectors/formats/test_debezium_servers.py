"""The servers behind the messages of MySQL's and MariaDB's connectors."""

from __future__ import annotations

import json
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
    """The same from JSON and from columns."""
    messages = [
        Message(json.dumps({"after": {"id": 1}, "source": one, "op": "c"}).encode(), None, (), "p", "p/0", at, at_ms)
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
    assert watched({"connector": "postgresql", "schema": "d", "table": "t", "lsn": 7}) == []
