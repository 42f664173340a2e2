"""Source connectors by the type name in the definition."""

from __future__ import annotations

from typing import cast

from airflow_cdc_provider.connectors import SOURCES
from airflow_cdc_provider.connectors.source import FetchesRows, SourceConnector
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.registry import load_class
from airflow_cdc_provider.core.spec.definition import Definition


def fetches_rows(definition: Definition) -> bool:
    return issubclass(load_class("source", definition.source.type, SOURCES), FetchesRows)


def open_source(definition: Definition, connection: ConnectionInfo) -> SourceConnector:
    kind = load_class("source", definition.source.type, SOURCES)
    return cast(SourceConnector, kind(definition.source, connection, definition.name))
