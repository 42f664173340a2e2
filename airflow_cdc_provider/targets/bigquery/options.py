"""The keys of a BigQuery target in the YAML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.spec.fields import doc
from airflow_cdc_provider.core.spec.target_locations import LocationParts, option_location


class Json(StrEnum):
    TEXT = "text"
    JSON = "json"


class PartitionUnit(StrEnum):
    HOUR = "hour"
    DAY = "day"
    MONTH = "month"
    YEAR = "year"
    RANGE = "range"


@dataclass(frozen=True)
class Partition:
    """``start``, ``end`` (exclusive) and ``interval`` only for ``range``."""

    table: str = doc("Source table.")
    column: str = doc(
        "Column of the copy that determines the partition of a row: a date or a timestamp, an integer for `range`."
    )
    by: PartitionUnit = doc("Size of a partition. BigQuery allows 10,000 partitions per table.", PartitionUnit.DAY)
    start: int = doc("For `range`: the smallest value with a partition of its own.", 0)
    end: int = doc("For `range`: the value after the largest one with a partition of its own.", 0)
    interval: int = doc("For `range`: the number of values in a partition.", 1, minimum=1, maximum=2**63 - 1)


@dataclass(frozen=True)
class BigQueryOptions:
    """The credentials are those of the connection."""

    location_keys: ClassVar[tuple[str, ...]] = ("connection",)

    dataset: str = doc("Dataset that holds the tables.", form="table")
    project: str = doc("Project of the dataset; by default that of the connection or its credentials.", "")
    job_project: str = doc("Project that runs and pays for the jobs; by default the project of the dataset.", "")
    region: str = doc("Location of the dataset: `EU`, `europe-west3`, …; by default BigQuery's own, `US`.", "")
    stage: str = doc(
        "Folder in Cloud Storage for files to load: `gs://bucket/folder`. Without it, each file is uploaded by a load "
        "job of its own.",
        "",
    )
    partition_by: tuple[Partition, ...] = doc(
        "Partitioned tables. A new partitioning takes effect with the next full copy.", tuple
    )
    labels: dict[str, str] = doc("Labels of all tables and jobs.", dict, keys="names")
    maximum_bytes_billed: int | None = doc(
        "Limit of the bytes that a job may be billed for; a job above it fails without costs.", None
    )
    json: Json = doc(
        "`text` stores JSON documents as STRING, exactly; `json` as JSON, which drops white space, the order of "
        "members and repeated members, and rejects numbers that it would round.",
        Json.TEXT,
    )

    @staticmethod
    def option_conflicts(target: Target) -> Iterator[tuple[str, str, str]]:
        """Invalid values: key, problem, allowed values."""
        listed = Counter(one.table for one in from_plain(BigQueryOptions, dict(target.options)).partition_by)
        if twice := [table for table, count in listed.items() if count > 1]:
            yield "partition_by", f"tables are listed twice: {', '.join(twice)}", "one entry per table"

    @staticmethod
    def location_parts(target: Target) -> LocationParts:
        """Without `project` it is that of the connection, which the YAML does not have."""
        return option_location(target, "project", "dataset")
