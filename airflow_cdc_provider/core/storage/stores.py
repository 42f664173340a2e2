"""The kinds of object stores, by the scheme of their locations. What differs between them is data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.tls import is_loopback, not_verified
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.storage.access import Access, require_own_credentials
from airflow_cdc_provider.core.storage.azure import azure_access
from airflow_cdc_provider.core.storage.gcs import gcs_access
from airflow_cdc_provider.core.storage.locations import ABFSS, GS, S3, Location, parse_location
from airflow_cdc_provider.core.storage.s3 import s3_access


@dataclass(frozen=True)
class StoreKind:
    """``extra``: of this package. ``store_class``: in ``obstore.store``. ``access``: reads a connection.
    ``iceberg_jars``: the group with the libraries of Iceberg's own access to the store."""

    extra: str
    store_class: str
    access: Callable[[Location, ConnectionInfo], Access]
    iceberg_jars: str


STORES = {
    S3: StoreKind("s3", "S3Store", s3_access, "s3"),
    GS: StoreKind("gcs", "GCSStore", gcs_access, "iceberg_gs"),
    ABFSS: StoreKind("azure", "AzureStore", azure_access, "iceberg_abfss"),
}


def store_access(location: Location, connection: ConnectionInfo) -> Access:
    """Of a location in an object store. Raises CheckFailed: CON020, CON040."""
    return STORES[location.scheme].access(location, connection)


def store_arguments(
    location: Location, connection: ConnectionInfo, environment: Mapping[str, str]
) -> tuple[str, dict[str, Any]]:
    """The name of the class in ``obstore.store``, and its arguments. Raises CheckFailed: CON020, CON021, CON040."""
    kind = STORES[location.scheme]
    access = kind.access(location, connection)
    if not access.ignores_environment:
        require_own_credentials(access, connection, environment)
    return kind.store_class, access.store_arguments()


def store_tls_warnings(location: str, connection: ConnectionInfo) -> list[Problem]:
    """A store on another host that is used without TLS. Raises CheckFailed: CON020, CON040."""
    parsed = parse_location(location)
    endpoint = store_access(parsed, connection).endpoint if parsed.scheme in STORES else ""
    if not endpoint.startswith("http://") or is_loopback(endpoint):
        return []
    return [not_verified(connection.connection_id, "endpoint_url: http", "write `https://` in endpoint_url")]
