"""The keys of a Delta target in the YAML."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from airflow_cdc_provider.core.spec.fields import doc


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
