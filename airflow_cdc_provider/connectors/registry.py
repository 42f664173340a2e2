"""From a type name to a connector."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, cast

from airflow_cdc_provider.connectors import SOURCES
from airflow_cdc_provider.connectors.source import SourceConnector
from airflow_cdc_provider.core.connections import ConnectionInfo
from airflow_cdc_provider.core.definition import Definition
from airflow_cdc_provider.core.errors import NotInstalled, Problem


def source_class(kind: str) -> Any:
    """The connector class of a source type; a type of another package is found by its entry point."""
    try:
        if kind in SOURCES:
            module, _, name = SOURCES[kind].partition(":")
            return getattr(import_module(module), name)
        return next(iter(entry_points(group="airflow_cdc_provider.sources", name=kind))).load()
    except ModuleNotFoundError as error:
        raise NotInstalled(
            Problem(
                "ENV010",
                f"source type {kind} needs a package that is not installed",
                found=error.name or str(error),
                do=f"pip install 'airflow-cdc-provider[{kind}]'",
            )
        ) from error


def open_source(definition: Definition, connection: ConnectionInfo) -> SourceConnector:
    kind = source_class(definition.source.type)
    return cast(SourceConnector, kind(definition.source, connection, definition.name))
