"""A stand-in for BigQuery on loopback: local-bigquery, with DuckDB behind the protocol of Google's own client."""

from __future__ import annotations

from pathlib import Path

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.sandbox.environments import folder_of, python_of
from airflow_cdc_provider.sandbox.ports import free_ports, is_open
from airflow_cdc_provider.sandbox.server import HOST, EmbeddedServer

PROJECT = "local"


class EmbeddedBigQuery(EmbeddedServer):
    """A project whose datasets end with the server. There is no login."""

    name = "BigQuery"
    user = "cdc"

    def __init__(self) -> None:
        self._python, self._home = python_of("bigquery"), folder_of("bigquery")
        super().__init__()
        self.port, self.stream_port = free_ports(2)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def connection(self) -> ConnectionInfo:
        extra = {"is_anonymous": True, "project": PROJECT, "endpoint_url": self.url}
        return ConnectionInfo("google_cloud", f"http://{HOST}", self.port, extra=extra)

    def _command(self) -> list[str]:
        script = Path(__file__).parent / "standins" / "bigquery.py"
        return [
            "env",
            f"HOME={self._home}",
            str(self._python),
            "-P",
            str(script),
            str(self.port),
            str(self.stream_port),
            str(self.folder),
        ]

    def _is_ready(self) -> bool:
        return is_open(self.port)
