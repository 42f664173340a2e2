"""The keys of a Spanner target in the YAML."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.spec.fields import doc
from airflow_cdc_provider.core.spec.target_locations import LocationParts, option_location


class Json(StrEnum):
    TEXT = "text"
    JSON = "json"


class Priority(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@dataclass(frozen=True)
class SpannerOptions:
    location_keys: ClassVar[tuple[str, ...]] = ("connection",)

    instance: str = doc("Instance that has the database.", form="table")
    database: str = doc("Database that holds the tables, in the dialect GoogleSQL.", form="table")
    project: str = doc("Project of the instance; by default the project of the connection.", "")
    json: Json = doc(
        "`text` stores JSON documents as STRING, exactly; `json` as JSON, which normalises them. Keys and tables "
        "without a key always store them as STRING.",
        Json.TEXT,
    )
    priority: Priority = doc("Priority of the requests among those of the instance.", Priority.MEDIUM)
    max_mutations: int = doc(
        "Most mutations of one transaction. Spanner allows 80,000 and counts the entries of secondary indexes, too: "
        "lower it if the tables have such indexes.",
        60_000,
        minimum=1_000,
        maximum=80_000,
    )

    @staticmethod
    def location_parts(target: Target) -> LocationParts:
        """Without `project` it is that of the connection, which the YAML does not have."""
        return option_location(target, "project", "instance", "database")
