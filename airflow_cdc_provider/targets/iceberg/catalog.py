"""The catalog of a target, as settings for Spark and for pyiceberg.

A folder is a warehouse with its own catalog, one SQLite file beside the tables. Both Iceberg's Java library (JDBC) and
pyiceberg (SQL) have a catalog over the same two tables of that file. The Hadoop catalog requires no file, but pyiceberg
does not have it, so workers could not read or fence its tables without starting Spark.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.storage.locations import parse_location
from airflow_cdc_provider.targets.iceberg.options import catalog_names
from airflow_cdc_provider.targets.iceberg.store_properties import java_properties, python_properties, rest_properties

FILE = "catalog.db"

BUSY_TIMEOUT_S = 60
"""How long a writer waits for a lock on the SQLite file; transactions take milliseconds."""


@dataclass(frozen=True)
class CatalogLocation:
    """``warehouse`` is the folder of our own catalog; empty if ``uri`` is that of a REST catalog. ``properties`` come
    from the connection and contain credentials."""

    name: str
    namespace: str
    warehouse: str = ""
    uri: str = ""
    properties: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def file(self) -> str:
        return f"{self.warehouse}/{FILE}"


def catalog_location(target: Target, connection: ConnectionInfo) -> CatalogLocation:
    """Raises CheckFailed (CON040) if the connection has extras that are not allowed."""
    name, namespace = catalog_names(target)
    if target.location:
        return CatalogLocation(name, namespace, parse_location(target.location).path)
    uri = connection.host.rstrip("/")
    properties = rest_properties(connection)
    if connection.password:
        properties["credential"] = ":".join(filter(None, (connection.login, connection.password)))
        properties.setdefault("oauth2-server-uri", f"{uri}/v1/oauth/tokens")
    return CatalogLocation(name, namespace, uri=uri, properties=properties)


def pyiceberg_properties(location: CatalogLocation) -> dict[str, str]:
    if location.uri:
        return {"type": "rest", "uri": location.uri, **python_properties(location.properties)}
    return {
        "type": "sql",
        "uri": f"sqlite:///{location.file}?timeout={BUSY_TIMEOUT_S}",
        "warehouse": location.warehouse,
    }


def create_catalog(location: CatalogLocation) -> None:
    """Create the empty catalog of a folder, if missing, atomically: Java's library would first create its table and
    then add a column, and concurrent readers would fail."""
    from pyiceberg.catalog.sql import SqlCatalog

    if Path(location.file).exists():
        return
    Path(location.warehouse).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=location.warehouse, prefix=".catalog-") as folder:
        new = f"{folder}/{FILE}"
        SqlCatalog(location.name, uri=f"sqlite:///{new}", warehouse=location.warehouse).close()
        with contextlib.suppress(FileExistsError):
            os.link(new, location.file)


def spark_settings(location: CatalogLocation) -> dict[str, str]:
    """Settings of a session, not of the application: they may contain credentials, and sessions are not logged."""
    catalog = f"spark.sql.catalog.{location.name}"
    # Without the cache, since a cached table would hide fences of other processes.
    common = {catalog: "org.apache.iceberg.spark.SparkCatalog", f"{catalog}.cache-enabled": "false"}
    if location.uri:
        properties = {"type": "rest", "uri": location.uri, **java_properties(location.properties)}
    else:
        properties = {
            "type": "jdbc",
            "uri": f"jdbc:sqlite:{location.file}",
            "warehouse": location.warehouse,
            "jdbc.busy_timeout": str(BUSY_TIMEOUT_S * 1000),
            "jdbc.schema-version": "V1",
        }
    return {**common, **{f"{catalog}.{name}": value for name, value in properties.items()}}
