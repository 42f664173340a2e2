"""Connection data of a system, built from an Airflow connection on the worker. No other type carries secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_cdc_provider.core.errors import Problem

SECRETS_FILE = "CDC_SECRETS_FILE"
"""The environment variable of a Spark driver that contains the path of its secrets file."""


@dataclass(frozen=True)
class ConnectionInfo:
    """The fields of an Airflow connection. ``repr`` omits secrets."""

    connection_id: str = ""
    host: str = ""
    port: int | None = None
    login: str = ""
    password: str = field(default="", repr=False)
    schema: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class TargetSecrets:
    """``stage``: of the bucket through which the target loads rows. ``problems``: why one of the two cannot be used."""

    target: ConnectionInfo = field(default_factory=ConnectionInfo)
    stage: ConnectionInfo = field(default_factory=ConnectionInfo)
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Secrets:
    """The connections that a job uses. ``stage``: of the bucket through which the target loads rows. ``targets``: by
    name, if there are several; ``target`` and ``stage`` are then empty. ``registry``: of the schema registry of the
    source's messages. ``hash``: with the key of hashed columns."""

    source: ConnectionInfo = field(default_factory=ConnectionInfo)
    target: ConnectionInfo = field(default_factory=ConnectionInfo)
    staging: ConnectionInfo = field(default_factory=ConnectionInfo)
    stage: ConnectionInfo = field(default_factory=ConnectionInfo)
    registry: ConnectionInfo = field(default_factory=ConnectionInfo)
    hash: ConnectionInfo = field(default_factory=ConnectionInfo)
    targets: Mapping[str, TargetSecrets] = field(default_factory=dict)

    def of_target(self, name: str) -> TargetSecrets:
        return self.targets.get(name) or TargetSecrets(self.target, self.stage)

    @property
    def connections(self) -> tuple[ConnectionInfo, ...]:
        of_targets = (one for secrets in self.targets.values() for one in (secrets.target, secrets.stage))
        return (self.source, self.target, self.staging, self.stage, self.registry, self.hash, *of_targets)
