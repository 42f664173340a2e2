"""Which tables, and which writes into them, are simple enough."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from airflow_cdc_provider.core.table.merge_plan import DELETED, ORDER, MergePlan
from airflow_cdc_provider.core.table.schema import Kind, LogicalType, TableSchema
from airflow_cdc_provider.targets.delta.ddl import STATISTICS, is_listed
from airflow_cdc_provider.targets.delta.local_engine.deletion_vectors import IN_FILE, INLINE
from airflow_cdc_provider.targets.delta.local_engine.log_replay import ActiveFile, TableSnapshot

READER, WRITER = 3, 7
FEATURES = frozenset({"deletionVectors", "timestampNtz", "appendOnly", "invariants"})
"""The last two by name only: what they ask for stands in the settings and the columns, and is looked for there."""

HARMLESS = (
    "delta.enableDeletionVectors",
    "delta.checkpointInterval",
    "delta.dataSkippingNumIndexedCols",
    STATISTICS,
    "delta.deletedFileRetentionDuration",
    "delta.logRetentionDuration",
    "delta.tuneFileSizesForRewrites",
    "delta.targetFileSize",
    "delta.autoOptimize.",
    "delta.parquet.compression.codec",
)
INDEXED_COLUMNS = 32

TIMESTAMP_NTZ = "timestamp_ntz"

_TYPES: dict[Kind, str] = {
    Kind.BOOLEAN: "boolean",
    Kind.INT16: "short",
    Kind.INT32: "integer",
    Kind.INT64: "long",
    Kind.FLOAT32: "float",
    Kind.FLOAT64: "double",
    Kind.TEXT: "string",
    Kind.JSON: "string",
    Kind.UUID: "string",
    Kind.BYTES: "binary",
    Kind.DATE: "date",
    Kind.TIMESTAMP: TIMESTAMP_NTZ,
    Kind.TIMESTAMPTZ: "timestamp",
}


def supports_plan(plan: MergePlan) -> bool:
    """Every staged row is known whole, and no row changes but those that staged rows meet."""
    floating = {Kind.FLOAT32, Kind.FLOAT64}
    keys = [plan.schema.column(name) for name in plan.schema.key]
    plain = bool(keys) and not any(column.type.kind in floating for column in keys)
    return plain and not (plan.partial or plan.truncated or plan.added)


def supports_table(snapshot: TableSnapshot, plan: MergePlan) -> bool:
    """The table asks nothing of its writers but deletion vectors, and holds the columns of the plan and no others."""
    return (
        supports_writes(snapshot)
        and dict(_columns(snapshot.metadata)) == dict(expected_columns(plan.schema, plan.soft))
        and all(map(_simple_file, snapshot.files))
    )


def supports_writes(snapshot: TableSnapshot) -> bool:
    protocol, metadata = snapshot.protocol, snapshot.metadata
    versions = protocol["minReaderVersion"], protocol["minWriterVersion"]
    features = {*protocol.get("readerFeatures", ()), *protocol.get("writerFeatures", ())}
    configuration: Mapping[str, str] = metadata.get("configuration", {})
    return (
        versions == (READER, WRITER)
        and "deletionVectors" in features <= FEATURES
        and configuration.get("delta.enableDeletionVectors") == "true"
        and all(name.startswith(HARMLESS) or not name.startswith("delta.") for name in configuration)
        and not metadata["partitionColumns"]
    )


def _simple_file(file: ActiveFile) -> bool:
    """It stands in the table's folder, under a name that is spelled as it is, and tells how many rows it has."""
    vector = file.vector or {"storageType": IN_FILE}
    return file.rows is not None and not set("/%") & set(file.path) and vector["storageType"] in (IN_FILE, INLINE)


def column_order(snapshot: TableSnapshot) -> list[str]:
    return [name for name, _ in _columns(snapshot.metadata)]


def measured_columns(metadata: Mapping[str, Any]) -> Sequence[str]:
    """The columns that the table wants minima and maxima of."""
    configuration: Mapping[str, str] = metadata.get("configuration", {})
    names = [name for name, _ in _columns(metadata)]
    if listed := configuration.get(STATISTICS):
        return [name for name in names if is_listed(name, listed)]
    number = int(configuration.get("delta.dataSkippingNumIndexedCols", INDEXED_COLUMNS))
    return names if number < 0 else names[:number]


def expected_columns(schema: TableSchema, soft: bool) -> Iterator[tuple[str, str]]:
    """Names and Delta's types of a table of ours."""
    for column in schema.columns:
        yield column.name, _type(column.type)
    if schema.key:
        yield ORDER, "string"
    if soft:
        yield DELETED, "boolean"


def _type(logical: LogicalType) -> str:
    if logical.kind is Kind.DECIMAL:
        return f"decimal({logical.precision},{logical.scale})"
    return _TYPES[logical.kind]


def _columns(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and type; of one with rules of its own the type is none of ours."""
    for field in json.loads(metadata["schemaString"])["fields"]:
        rules = not field["nullable"] or any(name.startswith(("delta.", "CURRENT_")) for name in field["metadata"])
        yield field["name"], "" if rules or not isinstance(field["type"], str) else field["type"]
