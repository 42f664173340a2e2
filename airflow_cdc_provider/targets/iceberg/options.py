"""The keys of an Iceberg target in the YAML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.storage.locations import FOLDER, parse_location


@dataclass(frozen=True)
class IcebergOptions:
    """Iceberg takes none of its own: `location`, `connection` and `catalog` belong to every target."""

    location_keys: ClassVar[tuple[str, ...]] = ("location", "connection")
    scope_key: ClassVar[str] = "catalog"

    @staticmethod
    def option_conflicts(target: Target) -> Iterator[tuple[str, str, str]]:
        """Which of the common keys cannot be what they are: key, what is wrong with it, what is allowed."""
        if target.location and target.connection:
            yield "connection", "a folder and a catalog at once", "`location`, or `connection` to a REST catalog"
        if parse_location(target.location).scheme != FOLDER:
            yield "location", "no catalog of our own in a bucket", "a folder, or `connection` to a REST catalog"
        parts = target.catalog.split(".")
        if target.catalog and not (len(parts) <= 2 and all(parts)):
            yield "catalog", "not a name", "namespace, or catalog.namespace"
