"""Which catalog the tables stand in, said once for Spark and once for the library without a JVM.

A folder becomes a warehouse with a catalog of its own, one SQLite file beside the tables. Iceberg's Java has a catalog
for that (JDBC), and so has its Python (SQL), over the same two tables of the file; the Hadoop catalog, which needs no
file, is not in Python, so no worker could look into it or fence it without starting Spark.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow_cdc_provider.core.connections.allowed_extras import allowed_options
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.storage.locations import parse_location

CATALOG = "lake"
NAMESPACE = "cdc"
FILE = "catalog.db"

LOCKED_S = 60
"""How long a writer waits for another one that holds the SQLite file: their transactions take milliseconds."""

REST_PROPERTIES = frozenset(
    {
        "adls.account-host",
        "adls.account-key",
        "adls.account-name",
        "adls.client-id",
        "adls.client-secret",
        "adls.sas-token",
        "adls.tenant-id",
        "audience",
        "client.region",
        "credential",
        "gcs.oauth2.token",
        "gcs.project-id",
        "header.X-Iceberg-Access-Delegation",
        "oauth2-server-uri",
        "prefix",
        "resource",
        "rest.signing-name",
        "rest.signing-region",
        "rest.sigv4-enabled",
        "s3.access-key-id",
        "s3.connect-timeout",
        "s3.endpoint",
        "s3.force-virtual-addressing",
        "s3.path-style-access",
        "s3.region",
        "s3.remote-signing-enabled",
        "s3.request-timeout",
        "s3.secret-access-key",
        "s3.session-token",
        "scope",
        "token",
        "warehouse",
    }
)
"""What the extra of a connection may tell both libraries of a REST catalog. Left out: whatever names a class
(``py-io-impl``, ``io-impl``, ``client.credentials-provider``, ``auth`` …), and what this module sets itself."""


@dataclass(frozen=True)
class CatalogLocation:
    """``warehouse`` is the folder of a catalog of our own; empty where ``uri`` names a REST catalog. ``properties`` are
    what the connection adds: credentials are among them."""

    name: str
    namespace: str
    warehouse: str = ""
    uri: str = ""
    properties: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def file(self) -> str:
        return f"{self.warehouse}/{FILE}"


def catalog_location(target: Target, connection: ConnectionInfo) -> CatalogLocation:
    """``target.catalog`` is ``catalog.namespace``, or the namespace alone. Raises CheckFailed (CON040) where the
    connection says what is not allowed."""
    name, _, namespace = target.catalog.rpartition(".")
    name, namespace = name or CATALOG, namespace or NAMESPACE
    if target.location:
        return CatalogLocation(name, namespace, parse_location(target.location).path)
    uri = connection.host.rstrip("/")
    properties = {name: _text(value) for name, value in allowed_options(connection, REST_PROPERTIES).items()}
    if connection.password:
        properties["credential"] = ":".join(filter(None, (connection.login, connection.password)))
        properties.setdefault("oauth2-server-uri", f"{uri}/v1/oauth/tokens")
    return CatalogLocation(name, namespace, uri=uri, properties=properties)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def library_properties(place: CatalogLocation) -> dict[str, str]:
    if place.uri:
        return {"type": "rest", "uri": place.uri, **place.properties}
    return {"type": "sql", "uri": f"sqlite:///{place.file}?timeout={LOCKED_S}", "warehouse": place.warehouse}


def make_catalog(place: CatalogLocation) -> None:
    """The empty catalog of a folder, where it is not there yet. It appears whole: Java's library would make its table
    first and add a column then, and a reader in between would fail."""
    from pyiceberg.catalog.sql import SqlCatalog

    if Path(place.file).exists():
        return
    Path(place.warehouse).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.warehouse, prefix=".catalog-") as folder:
        new = f"{folder}/{FILE}"
        SqlCatalog(place.name, uri=f"sqlite:///{new}", warehouse=place.warehouse).close()
        with contextlib.suppress(FileExistsError):
            os.link(new, place.file)


def spark_settings(place: CatalogLocation) -> dict[str, str]:
    """Settings of a session, not of the application: they may hold credentials, and sessions are not written down."""
    catalog = f"spark.sql.catalog.{place.name}"
    # A cached table is an old one: what the fence of another process did would not be seen.
    common = {catalog: "org.apache.iceberg.spark.SparkCatalog", f"{catalog}.cache-enabled": "false"}
    if place.uri:
        told = {"type": "rest", "uri": place.uri, **place.properties}
    else:
        told = {
            "type": "jdbc",
            "uri": f"jdbc:sqlite:{place.file}",
            "warehouse": place.warehouse,
            "jdbc.busy_timeout": str(LOCKED_S * 1000),
            "jdbc.schema-version": "V1",
        }
    return {**common, **{f"{catalog}.{name}": value for name, value in told.items()}}
