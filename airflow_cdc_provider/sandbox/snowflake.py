"""A stand-in for Snowflake on loopback: fakesnow, with DuckDB behind the protocol of Snowflake's own client."""

from __future__ import annotations

import json
from pathlib import Path

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.sandbox.environments import python_of
from airflow_cdc_provider.sandbox.ports import free_ports, is_open
from airflow_cdc_provider.sandbox.server import HOST, EmbeddedServer

USER = "cdc"
STANDIN = Path(__file__).parent / "standins" / "snowflake.py"


class EmbeddedSnowflake(EmbeddedServer):
    """An account whose databases end with the server. Every login is accepted. ``store``: the connection of type
    ``aws`` by which it reads external stages."""

    name = "Snowflake"
    user = USER

    def __init__(self, store: ConnectionInfo | None = None) -> None:
        self._python = python_of("snowflake")
        super().__init__()
        (self.port,) = free_ports(1)
        self.password = "any"
        access = (
            {"endpoint": store.extra["endpoint_url"], "key": store.login, "secret": store.password} if store else {}
        )
        self._store = self._private("store.json", json.dumps(access))

    @property
    def connection(self) -> ConnectionInfo:
        extra = {"account": "standin", "host": HOST, "protocol": "http"}
        return ConnectionInfo("snowflake", HOST, self.port, self.user, self.password, extra=extra)

    def _command(self) -> list[str]:
        return [str(self._python), "-P", str(STANDIN), str(self.port), str(self._store)]

    def _is_ready(self) -> bool:
        return is_open(self.port)
