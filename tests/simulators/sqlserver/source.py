"""The connector on a simulated database. The host of its connection is the simulator's folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from airflow_cdc_provider.connectors.sources.sqlserver.client import Client
from airflow_cdc_provider.connectors.sources.sqlserver.source import SqlServerSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from tests.simulators.sqlserver.client import SimulatedClient

NAME = "tests.simulators.sqlserver.source:SimulatedSource"


class SimulatedSource(SqlServerSource):
    """``on_sleep``: by folder, called instead of waiting."""

    on_sleep: ClassVar[dict[str, Callable[[float], None]]] = {}

    def open_client(self, connection: ConnectionInfo) -> Client:
        self.folder = connection.host
        return SimulatedClient(Path(connection.host), dict(connection.extra))

    def sleep(self, seconds: float) -> None:
        self.on_sleep[self.folder](seconds)
