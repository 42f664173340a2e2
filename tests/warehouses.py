"""Warehouses of a REST catalog in buckets of each kind, and the credentials of their stores."""

from __future__ import annotations

import time

from airflow_cdc_provider.core.storage.locations import ABFSS, GS, S3, parse_location
from tests.buckets import Azure, CloudStorage, ObjectStore
from tests.rest_catalog import Warehouse

HOUR_MS = 3_600_000
AZURE_FILES = "airflow_cdc_provider.targets.iceberg.azure_files.azure_files"


def bucket_warehouse(objects: ObjectStore, path: str, vended: bool) -> Warehouse:
    """``vended``: its answers about tables contain credentials. Iceberg's Java library does not read those of Azure per
    prefix."""
    keys, config = store_credentials(objects), store_address(objects)
    is_azure = objects.kind == ABFSS
    library = {"py-io-impl": AZURE_FILES} if is_azure else {}
    return Warehouse(objects.url(path), {**config, **keys, **library}, config, keys if vended else {}, is_azure)


def store_address(objects: ObjectStore, address: str = "") -> dict[str, str]:
    """As a catalog answers it. ``address``: another one than that of the server."""
    at = address or objects.address
    if objects.kind == ABFSS:
        host = parse_location(objects.url("")).host
        return {f"adls.connection-string.{host}": f"{at}/{host.partition('.')[0]}"}
    return {
        S3: {"s3.endpoint": at, "s3.path-style-access": "true", "client.region": "us-east-1"},
        GS: {"gcs.service.host": at, "gcs.project-id": "project"},
    }[objects.kind]


def store_credentials(objects: ObjectStore) -> dict[str, str]:
    """As a catalog answers them."""
    if isinstance(objects, Azure):
        host = parse_location(objects.url("")).host
        return {f"adls.sas-token.{host}": objects.sas_token()}
    if isinstance(objects, CloudStorage):
        expiry = str(int(time.time() * 1000) + HOUR_MS)
        return {"gcs.oauth2.token": objects.token(), "gcs.oauth2.token-expires-at": expiry}
    return {"s3.access-key-id": objects.connection.login, "s3.secret-access-key": objects.connection.password}


def connection_credentials(objects: ObjectStore) -> dict[str, str]:
    """As the connection of the catalog has them."""
    if isinstance(objects, Azure):
        return {"adls.account-name": objects.connection.login, "adls.account-key": objects.connection.password}
    return store_credentials(objects)
