"""Creates the target of a definition from its type name."""

from __future__ import annotations

from typing import cast

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.registry import load_class
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets import TARGETS
from airflow_cdc_provider.targets.target import TargetTables


def open_target(definition: Definition, secrets: Secrets, log: ChangeLog) -> TargetTables:
    """The connection of a stage is the last argument of a class that has one."""
    kind = load_class("target", definition.target.type, TARGETS)
    stage = [secrets.stage] if getattr(kind, "has_stage", False) else []
    return cast(TargetTables, kind(definition.target, secrets.target, definition.name, log, *stage))
