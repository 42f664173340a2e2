"""The keys of a MySQL or MariaDB target in the YAML."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from airflow_cdc_provider.core.spec.fields import doc


class Floats(StrEnum):
    NUMBER = "number"
    TEXT = "text"


@dataclass(frozen=True)
class MysqlTargetOptions:
    location_keys: ClassVar[tuple[str, ...]] = ("connection",)
    holds_shards: ClassVar[bool] = True
    scope_key: ClassVar[str] = "schema"

    schema: str = doc("Database that holds the tables.", form="table")
    floats: Floats = doc(
        "`number` stores floats as DOUBLE, which has no NaN and no Infinity; `text` stores them as text.",
        Floats.NUMBER,
    )
