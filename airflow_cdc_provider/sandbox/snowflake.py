"""A stand-in for Snowflake on loopback: fakesnow, with DuckDB behind the protocol of Snowflake's own client."""

from __future__ import annotations

from pathlib import Path

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.sandbox.environments import python_of
from airflow_cdc_provider.sandbox.ports import free_ports, is_open
from airflow_cdc_provider.sandbox.server import HOST, EmbeddedServer

USER = "cdc"


class EmbeddedSnowflake(EmbeddedServer):
    """An account whose databases end with the server. Every login is accepted."""

    name = "Snowflake"
    user = USER

    def __init__(self) -> None:
        self._python = python_of("snowflake")
        super().__init__()
        (self.port,) = free_ports(1)
        self.password = "any"

    @property
    def connection(self) -> ConnectionInfo:
        extra = {"account": "standin", "host": HOST, "protocol": "http"}
        return ConnectionInfo("snowflake", HOST, self.port, self.user, self.password, extra=extra)

    def _command(self) -> list[str]:
        return [str(self._python), "-P", str(Path(__file__).parent / "standins" / "snowflake.py"), str(self.port)]

    def _is_ready(self) -> bool:
        return is_open(self.port)
