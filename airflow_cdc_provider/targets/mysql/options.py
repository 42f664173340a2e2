"""The keys of a MySQL or MariaDB target in the YAML."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.spec.fields import doc
from airflow_cdc_provider.core.spec.target_locations import LocationParts, option_location


class Floats(StrEnum):
    NUMBER = "number"
    TEXT = "text"


@dataclass(frozen=True)
class MysqlTargetOptions:
    location_keys: ClassVar[tuple[str, ...]] = ("connection",)
    holds_shards: ClassVar[bool] = True

    schema: str = doc("Database that holds the tables.", form="table")
    floats: Floats = doc(
        "`number` stores floats as DOUBLE, which has no NaN and no Infinity; `text` stores them as text.",
        Floats.NUMBER,
    )

    @staticmethod
    def location_parts(target: Target) -> LocationParts:
        return option_location(target, "schema")
