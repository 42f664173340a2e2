"""The keys of a PostgreSQL target in the YAML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.spec.fields import doc
from airflow_cdc_provider.core.spec.target_locations import LocationParts, option_location


@dataclass(frozen=True)
class PostgresTargetOptions:
    """The database is that of the connection."""

    location_keys: ClassVar[tuple[str, ...]] = ("connection",)
    holds_shards: ClassVar[bool] = True

    schema: str = doc("Schema that holds the tables, as PostgreSQL spells it.", form="table")

    @staticmethod
    def location_parts(target: Target) -> LocationParts:
        return option_location(target, "schema")
