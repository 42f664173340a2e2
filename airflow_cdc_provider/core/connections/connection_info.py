"""How to reach a system. Made from an Airflow connection on the worker; the only carrier of secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SECRETS_FILE = "CDC_SECRETS_FILE"
"""The variable of a driver's environment that says where its secrets file is."""


@dataclass(frozen=True)
class ConnectionInfo:
    """The fields of an Airflow connection. ``repr`` shows no secret."""

    connection_id: str = ""
    host: str = ""
    port: int | None = None
    login: str = ""
    password: str = field(default="", repr=False)
    schema: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Secrets:
    """What a job needs to know and nobody else may: one connection per end of the replicator."""

    source: ConnectionInfo = field(default_factory=ConnectionInfo)
    target: ConnectionInfo = field(default_factory=ConnectionInfo)
    staging: ConnectionInfo = field(default_factory=ConnectionInfo)
