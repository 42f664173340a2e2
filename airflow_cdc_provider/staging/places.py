"""From a definition to the storage its change log stands on."""

from __future__ import annotations

from airflow_cdc_provider.core.connections import ConnectionInfo
from airflow_cdc_provider.core.definition import Definition
from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.staging.local import LocalStore
from airflow_cdc_provider.staging.log import ChangeLog
from airflow_cdc_provider.staging.store import Store


def open_log(definition: Definition, connection: ConnectionInfo) -> ChangeLog:
    """The change log of a replicator. Touches nothing yet."""
    return ChangeLog(open_store(f"{definition.staging.location.rstrip('/')}/{definition.name}", connection))


def open_store(location: str, connection: ConnectionInfo) -> Store:
    scheme, separator, _ = location.partition("://")
    if not separator or scheme == "file":
        return LocalStore(location)
    raise CheckFailed(
        Problem(
            "ENV004", "no staging on this kind of storage", where=location, found=scheme, allowed="a folder, file://"
        )
    )
