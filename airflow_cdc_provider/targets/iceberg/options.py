"""The keys of an Iceberg target in the YAML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.spec.fields import doc
from airflow_cdc_provider.core.spec.target_locations import LocationParts
from airflow_cdc_provider.core.storage.locations import FOLDER, parse_location

CATALOG, NAMESPACE = "lake", "cdc"
"""Those of tables whose target names none."""


class Storage(StrEnum):
    FOLDER = "folder"
    S3 = "s3"
    GS = "gs"
    ABFSS = "abfss"


@dataclass(frozen=True)
class IcebergOptions:
    """`location`, `connection` and `catalog` are common to all targets."""

    holds_shards: ClassVar[bool] = True
    location_keys: ClassVar[tuple[str, ...]] = ("location", "connection")
    scope_key: ClassVar[str] = "catalog"

    storage: Storage = doc(
        "Where the REST catalog of `connection` creates the tables. Jobs get the libraries of this store.",
        Storage.FOLDER,
    )

    @staticmethod
    def location_parts(target: Target) -> LocationParts:
        """The name of a catalog is one of our sessions only."""
        namespace = catalog_names(target)[1].lower()
        return ("catalog", namespace), ("location", target.location.rstrip("/")), ("connection", target.connection)

    @staticmethod
    def table_parent(target: Target) -> tuple[str, ...]:
        """The folders between `location` and those of the tables."""
        return (catalog_names(target)[1],)

    @staticmethod
    def option_conflicts(target: Target) -> Iterator[tuple[str, str, str]]:
        """Invalid values: key, problem, allowed values."""
        if target.location and target.connection:
            yield "connection", "both a folder and a catalog", "`location`, or `connection` to a REST catalog"
        if parse_location(target.location).scheme != FOLDER:
            yield "location", "a bucket requires a REST catalog", "a folder, or `connection` to a REST catalog"
        if target.location and target.options.get("storage", Storage.FOLDER) != Storage.FOLDER:
            yield "storage", "only a REST catalog creates tables in a bucket", "`connection` in place of `location`"
        parts = target.catalog.split(".")
        if target.catalog and not (len(parts) <= 2 and all(parts)):
            yield "catalog", "not a valid name", "namespace, or catalog.namespace"


def catalog_names(target: Target) -> tuple[str, str]:
    """Catalog and namespace: ``target.catalog`` is ``catalog.namespace``, or the namespace alone."""
    name, _, namespace = target.catalog.rpartition(".")
    return name or CATALOG, namespace or NAMESPACE
