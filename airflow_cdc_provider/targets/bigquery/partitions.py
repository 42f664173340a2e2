"""The partitioning of a copy."""

from __future__ import annotations

from airflow_cdc_provider.core.table.schema import Column, Kind
from airflow_cdc_provider.targets.bigquery.options import Partition, PartitionUnit

TRUNCATING = {Kind.DATE: "DATE_TRUNC", Kind.TIMESTAMP: "DATETIME_TRUNC", Kind.TIMESTAMPTZ: "TIMESTAMP_TRUNC"}
INTEGERS = frozenset({Kind.INT16, Kind.INT32, Kind.INT64})


def fits(partition: Partition, column: Column) -> bool:
    """Whether BigQuery can partition by a column of this type."""
    kind = column.type.kind
    if partition.by is PartitionUnit.RANGE:
        return kind in INTEGERS and partition.start < partition.end
    return kind in TRUNCATING and not (kind is Kind.DATE and partition.by is PartitionUnit.HOUR)


def partition_expression(partition: Partition, column: Column, name: str) -> str:
    """``name``: SQL."""
    if partition.by is PartitionUnit.RANGE:
        return f"RANGE_BUCKET({name}, GENERATE_ARRAY({partition.start}, {partition.end}, {partition.interval}))"
    if column.type.kind is Kind.DATE and partition.by is PartitionUnit.DAY:
        return name
    return f"{TRUNCATING[column.type.kind]}({name}, {partition.by.upper()})"
