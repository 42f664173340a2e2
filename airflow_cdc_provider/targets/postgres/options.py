"""The keys of a PostgreSQL target in the YAML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from airflow_cdc_provider.core.spec.definition import doc


@dataclass(frozen=True)
class PostgresTargetOptions:
    """The database is that of the connection."""

    places: ClassVar[tuple[str, ...]] = ("connection",)
    within: ClassVar[str] = "schema"

    schema: str = doc("Schema that holds the tables, as PostgreSQL spells it.", form="table")
