"""Opens the change log of a replicator, and stores by location."""

from __future__ import annotations

from typing import cast

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.registry import load_library
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.storage.locations import ALLOWED, FOLDER, parse_location
from airflow_cdc_provider.core.storage.stores import STORES
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.staging.store import Store

OBJECT_STORE = "airflow_cdc_provider.staging.object_store"
"""By name: its library is imported only if it is used."""


def open_log(definition: Definition, connection: ConnectionInfo) -> ChangeLog:
    """The change log of a replicator. Does not access the storage yet."""
    return ChangeLog(open_store(f"{definition.staging.location.rstrip('/')}/{definition.name}", connection))


def open_store(location: str, connection: ConnectionInfo) -> Store:
    """Does not access the storage yet. Raises CheckFailed (ENV004 for an unsupported scheme; CON020, CON021, CON040 for
    the connection) and NotInstalled (ENV010)."""
    scheme = parse_location(location).scheme
    if scheme == FOLDER:
        return LocalStore(location)
    if scheme in STORES:
        module = load_library(OBJECT_STORE, "store", STORES[scheme].extra)
        return cast(Store, module.ObjectStore(location, connection))
    raise CheckFailed.of(
        "ENV004", "this type of storage is not supported", where=location, found=scheme, allowed=ALLOWED
    )
