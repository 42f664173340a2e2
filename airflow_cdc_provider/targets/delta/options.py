"""The keys of a Delta target in the YAML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.spec.fields import doc
from airflow_cdc_provider.core.storage.locations import FOLDER, parse_location


class TableFeature(StrEnum):
    """Features of Delta's protocol, by their names there."""

    COLUMN_MAPPING = "columnMapping"
    TYPE_WIDENING = "typeWidening"


@dataclass(frozen=True)
class DeltaOptions:
    holds_shards: ClassVar[bool] = True

    table_features: tuple[TableFeature, ...] = doc(
        "Features that a schema change may enable in a table, so that the table follows without another copy: "
        "`columnMapping` for renamed and dropped columns, `typeWidening` for wider types. Every reader of the table "
        "must support them; Spark's tasks do all merges into such a table.",
        tuple,
    )

    @staticmethod
    def option_conflicts(target: Target) -> Iterator[tuple[str, str, str]]:
        """Invalid values: key, problem, allowed values. A bucket without its scheme would be a folder of each
        worker."""
        if target.connection and target.location and parse_location(target.location).scheme == FOLDER:
            allowed = "a `connection` for a bucket: s3://, gs:// or abfss://"
            yield "connection", "`connection` has no effect on a folder", allowed
