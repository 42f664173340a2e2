"""The YAML keys of a PostgreSQL source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.fields import doc


@dataclass(frozen=True)
class PostgresOptions:
    publication: str = doc("Publication that contains the tables; created by their owner.")
    keeps_texts: ClassVar[bool] = True
    slot: str = doc("Name of the replication slot; `cdc_<replicator>` by default.", "")


def read_options(options: Mapping[str, Any], replicator: str) -> PostgresOptions:
    """The options with the slot's name filled in."""
    given = from_plain(PostgresOptions, dict(options))
    return given if given.slot else PostgresOptions(given.publication, f"cdc_{replicator}")
