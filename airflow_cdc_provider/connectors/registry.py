"""Source connectors by the type name in the definition."""

from __future__ import annotations

from typing import cast

from airflow_cdc_provider.connectors import MESSAGE_SOURCES, SOURCES
from airflow_cdc_provider.connectors.source import SourceConnector
from airflow_cdc_provider.connectors.source_features import FetchesRows, RegistryAccess, UsesRegistry
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.registry import load_class
from airflow_cdc_provider.core.spec.definition import Definition

REGISTRY = "registry"
"""The key of the YAML with the connection of a schema registry."""


def fetches_rows(definition: Definition) -> bool:
    return issubclass(load_class("source", definition.source.type, SOURCES), FetchesRows)


def delivers_late(definition: Definition) -> bool:
    """Whether the source may deliver changes again, or after later ones of their table."""
    return definition.source.type in MESSAGE_SOURCES


def registry_connection(definition: Definition) -> str:
    """The connection id of the schema registry; empty if there is none."""
    return str(definition.source.options.get(REGISTRY, "")) if definition.source.type in MESSAGE_SOURCES else ""


def open_source(
    definition: Definition, connection: ConnectionInfo, registry: RegistryAccess | None = None
) -> SourceConnector:
    """``registry``: needed to read the stream, if the definition names one."""
    kind = load_class("source", definition.source.type, SOURCES)
    source = cast(SourceConnector, kind(definition.source, connection, definition.name))
    if registry is not None and registry_connection(definition) and isinstance(source, UsesRegistry):
        source.use_registry(registry)
    return source
