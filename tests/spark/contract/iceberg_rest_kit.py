"""Iceberg in a REST catalog with an Airflow connection. Its warehouse is a folder or a bucket."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyiceberg.catalog.rest import RestCatalog
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.storage.locations import FOLDER, S3
from airflow_cdc_provider.core.storage.stores import STORES
from airflow_cdc_provider.targets.iceberg.catalog import catalog_location, pyiceberg_properties, spark_settings
from airflow_cdc_provider.targets.iceberg.table_files import table_files
from tests.rest_catalog import rest_catalog
from tests.spark.contract.iceberg_kit import IcebergKit
from tests.spark.contract.sessions import small_session
from tests.warehouses import bucket_warehouse

SECRET = "s3cr3t-of-the-catalog"


class RestKit(IcebergKit):
    """``storage``: the scheme of the tables' location. ``extra``: of the connection."""

    catalog = RestCatalog

    def __init__(self, spark: SparkSession, url: str, storage: str, extra: dict[str, str] | None = None) -> None:
        self.storage = storage
        options = {"storage": "folder" if storage == FOLDER else storage}
        self.target = Target("iceberg", connection="rest", catalog="lake.cdc", options=options)
        self.connection = ConnectionInfo("rest", url, login="cdc", password=SECRET, extra=extra or {})
        self.secrets = Secrets(target=self.connection)
        self.jars = ("iceberg", *([STORES[storage].iceberg_jars] if storage in STORES else []))
        self.session = small_session(spark)
        for name, value in spark_settings(catalog_location(self.target, self.connection)).items():
            self.session.conf.set(name, value)

    @contextlib.contextmanager
    def opened(self) -> Iterator[Any]:
        properties = pyiceberg_properties(catalog_location(self.target, self.connection))
        with contextlib.closing(RestCatalog("lake", **properties)) as catalog:
            table = catalog.load_table("cdc.t")
            table.io = table_files(table.io, table.location())
            yield table

    def create(self) -> None:
        self.write("CREATE NAMESPACE IF NOT EXISTS lake.cdc")
        self.write("CREATE TABLE {t} (id INT) USING iceberg")


@contextlib.contextmanager
def iceberg_on_s3_kit(spark: SparkSession, folder: Path, fixture: Callable[[str], Any]) -> Iterator[RestKit]:
    """The catalog's answers contain the credentials of the bucket."""
    warehouse = bucket_warehouse(fixture("object_stores")[S3], f"iceberg/{uuid.uuid4().hex}", vended=True)
    with rest_catalog(folder, SECRET, warehouse) as url:
        yield RestKit(spark, url, S3)
