"""The keys of a Snowflake target in the YAML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.spec.fields import doc
from airflow_cdc_provider.core.spec.target_locations import LocationParts, option_location
from airflow_cdc_provider.core.storage.locations import FOLDER, parse_location


class Identifiers(StrEnum):
    UPPER = "upper"
    EXACT = "exact"


class Json(StrEnum):
    TEXT = "text"
    VARIANT = "variant"


@dataclass(frozen=True)
class SnowflakeOptions:
    """Account, role and warehouse are those of the connection."""

    location_keys: ClassVar[tuple[str, ...]] = ("connection",)

    database: str = doc("Database that holds the tables, as Snowflake spells it.", form="table")
    schema: str = doc("Schema that holds the tables, as Snowflake spells it.", form="table")
    identifiers: Identifiers = doc(
        "`upper` names tables and columns in capitals, so that queries need no quotes; `exact` keeps the names of the "
        "source, which queries must quote unless they are in capitals.",
        Identifiers.UPPER,
    )
    json: Json = doc(
        "`text` stores JSON documents as VARCHAR, exactly; `variant` as VARIANT, which drops the order of members and "
        "all but the last of repeated ones, and has numbers with an exponent, or with more than 38 digits, as doubles.",
        Json.TEXT,
    )
    stage: str = doc(
        "Folder in a bucket for the files to load. Without it they are uploaded to an internal stage.",
        "",
        form="location",
    )
    stage_name: str = doc(
        "Name of the external stage whose URL is `stage`: `STAGE`, or `DATABASE.SCHEMA.STAGE`, as Snowflake spells it.",
        "",
        form="stage",
    )
    stage_connection: str = doc(
        "Airflow connection for `stage`; without it, the role of the workers.", "", form="connection"
    )

    @staticmethod
    def location_parts(target: Target) -> LocationParts:
        return option_location(target, "database", "schema")

    @staticmethod
    def option_conflicts(target: Target) -> Iterator[tuple[str, str, str]]:
        """Invalid values: key, problem, allowed values."""
        stage, name = (str(target.options.get(key) or "") for key in ("stage", "stage_name"))
        if bool(stage) != bool(name):
            yield "stage" if name else "stage_name", "one of `stage` and `stage_name` is missing", "both, or neither"
        if stage and parse_location(stage).scheme == FOLDER:
            yield "stage", "Snowflake cannot read a folder of the workers", "a bucket"
