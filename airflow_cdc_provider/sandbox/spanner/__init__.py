"""A stand-in for Spanner on loopback: a small server of ours over Spanner's own gRPC messages, in memory.

It has what the target and Google's client need of Spanner, by its documentation: sessions, read-write transactions that
abort when what they read has changed, reads of earlier times, the limits of a commit, keys in Spanner's order, schema
changes as long-running operations, and the few queries that the target sends. Everything else is refused.
"""

from __future__ import annotations

import sys

import grpc

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.sandbox.ports import free_ports, is_open
from airflow_cdc_provider.sandbox.server import HOST, EmbeddedServer
from airflow_cdc_provider.sandbox.spanner.faults import METHOD, Fault

PROJECT, INSTANCE = "sandbox", "copies"


class EmbeddedSpanner(EmbeddedServer):
    """An instance whose databases end with the server. Every caller is accepted."""

    name = "Spanner"

    def __init__(self) -> None:
        super().__init__()
        (self.port,) = free_ports(1)

    @property
    def connection(self) -> ConnectionInfo:
        extra = {"project": PROJECT, "is_anonymous": True}
        return ConnectionInfo("spanner", f"http://{HOST}", self.port, extra=extra)

    def arm(self, fault: Fault) -> None:
        """What happens to the next commit, or the next schema change."""
        with grpc.insecure_channel(f"{HOST}:{self.port}") as channel:
            channel.unary_unary(METHOD, str.encode)(fault.value, timeout=10)

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "airflow_cdc_provider.sandbox.spanner.serving", str(self.port)]

    def _is_ready(self) -> bool:
        return is_open(self.port)
