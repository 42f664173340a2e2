"""From a definition to the storage its change log stands on."""

from __future__ import annotations

from typing import cast

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.core.registry import load_class
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.storage.locations import ALLOWED, FOLDER, S3, parse_location
from airflow_cdc_provider.core.storage.s3 import s3_access
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.staging.store import Store

# By name: a worker without object stores need not have their library.
OBJECT_STORES = {S3: "airflow_cdc_provider.staging.s3_store:S3Store"}


def open_log(definition: Definition, connection: ConnectionInfo) -> ChangeLog:
    """The change log of a replicator. Touches nothing yet."""
    return ChangeLog(open_store(f"{definition.staging.location.rstrip('/')}/{definition.name}", connection))


def open_store(location: str, connection: ConnectionInfo) -> Store:
    """Touches nothing yet. Raises CheckFailed: ENV004 for a storage without a store here, CON020 for a connection that
    cannot be followed; NotInstalled (ENV010)."""
    scheme = parse_location(location).scheme
    if scheme == FOLDER:
        return LocalStore(location)
    if scheme in OBJECT_STORES:
        return cast(Store, load_class("store", scheme, OBJECT_STORES)(location, s3_access(connection)))
    raise CheckFailed(
        Problem("ENV004", "no staging on this kind of storage", where=location, found=scheme, allowed=ALLOWED)
    )
