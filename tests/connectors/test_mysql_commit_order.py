"""Copies of MySQL begin when the commits before their anchor are visible, which settings of the server may hide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from airflow_cdc_provider.connectors.sources.mysql.client import MysqlClient
from airflow_cdc_provider.connectors.sources.mysql.copy import anchor_of
from airflow_cdc_provider.connectors.sources.mysql.options import MysqlOptions
from airflow_cdc_provider.connectors.sources.mysql.positions import position_of
from airflow_cdc_provider.connectors.sources.mysql.quiet_snapshot import begin_quiet_snapshot
from airflow_cdc_provider.connectors.sources.mysql.stream import Binlog
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed, SourceUnavailable

CLIENT = MysqlClient(ConnectionInfo("db", "db1"), "shop")
SEALED = {"file": "binlog.000001", "pos": "700", "gtid": "uuid:1-9"}
ON = {"gtid_mode": "ON", "binlog_order_commits": "ON"}


@dataclass
class Server:
    """A MySQL with these variables. ``asked``: the statements, with their parameters."""

    variables: Mapping[str, str]
    owned: str = ""
    end: tuple[str, int] = ("binlog.000001", 700)
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
        elif query == "SHOW BINARY LOG STATUS":
            self.rows = [self.end]
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


@pytest.mark.parametrize("sealed", [{}, SEALED, {**SEALED, "gtid": ""}])
def test_the_anchor_of_a_copy_is_the_end_of_the_binlog_once_all_before_it_is_visible(sealed: dict[str, str]) -> None:
    """The end of the last window may be an hour old: an ALTER since then would block the table with its first copy."""
    server = Server(ON, owned="uuid:10#12", end=("binlog.000001", 900))
    assert anchor_of(server, CLIENT, sealed) == position_of("binlog.000001", 900)
    assert server.waited_for == ["uuid:10"]
    asked = [query for query, _ in server.asked]
    assert asked.index("SHOW BINARY LOG STATUS") < asked.index("SELECT @@GLOBAL.gtid_owned")


def test_a_server_whose_binlog_ends_before_the_last_window_is_not_copied() -> None:
    with pytest.raises(SourceUnavailable, match="CPY007"):
        anchor_of(Server(ON, end=("binlog.000001", 4)), CLIENT, SEALED)
