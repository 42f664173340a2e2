"""Copies of MySQL begin when the commits before their anchor are visible, which settings of the server may hide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from airflow_cdc_provider.connectors.sources.mysql.client import MysqlClient
from airflow_cdc_provider.connectors.sources.mysql.copy import anchor_of
from airflow_cdc_provider.connectors.sources.mysql.options import MysqlOptions
from airflow_cdc_provider.connectors.sources.mysql.quiet_snapshot import begin_quiet_snapshot
from airflow_cdc_provider.connectors.sources.mysql.stream import Binlog
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed

CLIENT = MysqlClient(ConnectionInfo("db", "db1"), "shop")
SEALED = {"file": "binlog.000001", "pos": "700", "gtid": "uuid:1-9"}
ON = {"gtid_mode": "ON", "binlog_order_commits": "ON"}


@dataclass
class Server:
    """A MySQL with these variables. ``asked``: the statements, with their parameters."""

    variables: Mapping[str, str]
    owned: str = ""
    asked: list[tuple[str, Sequence[object]]] = field(default_factory=list)
    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def cursor(self) -> Server:
        return self

    def execute(self, query: str, parameters: Sequence[object] | None) -> None:
        self.asked.append((query, parameters or ()))
        if query == "SELECT VERSION()":
            self.rows = [("8.4.0",)]
        elif query.startswith("SHOW GLOBAL VARIABLES"):
            known = {"server_uuid": "uuid", **self.variables}
            self.rows = [(name, known[name]) for name in map(str, parameters or ()) if name in known]
        elif "gtid_owned" in query:
            self.rows = [(self.owned,)]
        elif "WAIT_FOR_EXECUTED_GTID_SET" in query:
            self.rows = [(0,)]
        else:
            self.rows = []

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.rows

    @property
    def waited_for(self) -> list[object]:
        return [parameters[0] for query, parameters in self.asked if "WAIT_FOR_EXECUTED_GTID_SET" in query]


@pytest.mark.parametrize(
    "variables",
    [ON | {"gtid_mode": "OFF"}, ON | {"gtid_mode": "OFF_PERMISSIVE"}, ON | {"binlog_order_commits": "OFF"}],
    ids=str,
)
def test_no_copy_begins_where_a_commit_of_the_binlog_may_be_hidden(variables: Mapping[str, str]) -> None:
    with pytest.raises(CheckFailed, match="SRC095"):
        anchor_of(Server(variables), CLIENT, SEALED)
    with pytest.raises(CheckFailed, match="SRC095"):
        begin_quiet_snapshot(Server(variables), Binlog(CLIENT, MysqlOptions(server_id=7)), "shop.t")


def test_a_copy_waits_for_the_last_transaction_of_the_last_window() -> None:
    server = Server(ON)
    assert anchor_of(server, CLIENT, SEALED) == SEALED and server.waited_for == ["uuid:1-9"]


def test_a_copy_after_a_window_without_global_ids_waits_for_all_that_is_logged() -> None:
    """The ids were switched on since."""
    server, sealed = Server(ON, owned="uuid:10#12"), {**SEALED, "gtid": ""}
    assert anchor_of(server, CLIENT, sealed) == sealed and server.waited_for == ["uuid:10"]
