"""The keys of an Iceberg target in the YAML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.storage.locations import FOLDER, parse_location


@dataclass(frozen=True)
class IcebergOptions:
    """None of its own: `location`, `connection` and `catalog` are common to all targets."""

    location_keys: ClassVar[tuple[str, ...]] = ("location", "connection")
    scope_key: ClassVar[str] = "catalog"

    @staticmethod
    def option_conflicts(target: Target) -> Iterator[tuple[str, str, str]]:
        """Common keys that are invalid for Iceberg: key, problem, allowed values."""
        if target.location and target.connection:
            yield "connection", "both a folder and a catalog", "`location`, or `connection` to a REST catalog"
        if parse_location(target.location).scheme != FOLDER:
            yield "location", "a bucket requires a REST catalog", "a folder, or `connection` to a REST catalog"
        parts = target.catalog.split(".")
        if target.catalog and not (len(parts) <= 2 and all(parts)):
            yield "catalog", "not a valid name", "namespace, or catalog.namespace"
