"""The keys of a Snowflake target in the YAML."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from airflow_cdc_provider.core.spec.definition import doc


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
    scope_key: ClassVar[str] = "schema"

    database: str = doc("Database that holds the tables, as Snowflake spells it.", form="table")
    schema: str = doc("Schema that holds the tables, as Snowflake spells it.", form="table")
    identifiers: Identifiers = doc(
        "`upper` names tables and columns in capitals, so that queries need no quotes; `exact` keeps the names of the "
        "source, which queries must quote unless they are in capitals.",
        Identifiers.UPPER,
    )
    json: Json = doc(
        "`text` stores JSON documents as VARCHAR, exactly; `variant` as VARIANT, which drops the order of members and "
        "repeated members.",
        Json.TEXT,
    )
