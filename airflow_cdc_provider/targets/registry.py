"""Creates the target of a definition from its type name."""

from __future__ import annotations

from typing import cast

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.registry import load_class
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets import TARGETS
from airflow_cdc_provider.targets.target import TargetTables


def open_target(definition: Definition, connection: ConnectionInfo, log: ChangeLog) -> TargetTables:
    kind = load_class("target", definition.target.type, TARGETS)
    return cast(TargetTables, kind(definition.target, connection, definition.name, log))
