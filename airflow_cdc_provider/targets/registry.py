"""From a type name to a target."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, cast

from airflow_cdc_provider.core.connections import ConnectionInfo
from airflow_cdc_provider.core.definition import Definition
from airflow_cdc_provider.core.errors import NotInstalled, Problem
from airflow_cdc_provider.staging.log import ChangeLog
from airflow_cdc_provider.targets import TARGETS
from airflow_cdc_provider.targets.target import TargetTables


def target_class(kind: str) -> Any:
    """The class of a target type; a type of another package is found by its entry point."""
    try:
        if kind in TARGETS:
            module, _, name = TARGETS[kind].partition(":")
            return getattr(import_module(module), name)
        return next(iter(entry_points(group="airflow_cdc_provider.targets", name=kind))).load()
    except ModuleNotFoundError as error:
        raise NotInstalled(
            Problem(
                "ENV010",
                f"target type {kind} needs a package that is not installed",
                found=error.name or str(error),
                do=f"pip install 'airflow-cdc-provider[{kind}]'",
            )
        ) from error


def open_target(definition: Definition, connection: ConnectionInfo, log: ChangeLog) -> TargetTables:
    kind = target_class(definition.target.type)
    return cast(TargetTables, kind(definition.target, connection, definition.name, log))
