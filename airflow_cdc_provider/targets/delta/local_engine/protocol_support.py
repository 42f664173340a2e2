"""The tables and merges that the local engine supports."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from airflow_cdc_provider.core.table.merge_plan import DELETED, ORDER, MergePlan, schema_delta
from airflow_cdc_provider.core.table.schema import Column, Kind, TableSchema
from airflow_cdc_provider.targets.delta.ddl import PHYSICAL_NAME, STATISTICS, is_listed, needs_column_mapping
from airflow_cdc_provider.targets.delta.local_engine.deletion_vectors import IN_FILE, INLINE
from airflow_cdc_provider.targets.delta.local_engine.log_replay import ActiveFile, TableSnapshot
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from airflow_cdc_provider.targets.sparksql.table_columns import type_name

READER, WRITER = 3, 7
FEATURES = frozenset({"deletionVectors", "timestampNtz", "appendOnly", "invariants"})
"""The last two by name only: their rules are in the settings and the columns, which are checked for them."""

SUPPORTED_SETTINGS = (
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
FLOATING = frozenset({Kind.FLOAT32, Kind.FLOAT64})

TIMESTAMP_NTZ = "timestamp_ntz"


def require_plan(plan: MergePlan) -> None:
    """Raises NeedsSpark."""
    if any(plan.schema.column(name).type.kind in FLOATING for name in plan.schema.key):
        raise NeedsSpark("a key of floating-point numbers")
    if plan.inserts_deleted:
        raise NeedsSpark("a repair of soft-deleted rows")
    if plan.truncated and plan.soft:
        raise NeedsSpark("a truncate of soft-deleted rows")
    if plan.truncated_at:
        raise NeedsSpark("a late truncate")
    if plan.truncated and plan.own:
        raise NeedsSpark("a truncate of some of the rows")
    if plan.truncated and plan.not_older:
        raise NeedsSpark("a repair of a truncate")


def require_table(snapshot: TableSnapshot, schema: TableSchema, soft: bool) -> None:
    """The table requires only deletion vectors of its writers, and has exactly the columns of the schema. Raises
    NeedsSpark."""
    require_writable(snapshot)
    if dict(_columns(snapshot.metadata)) != dict(expected_columns(schema, soft)):
        raise NeedsSpark("a table with other columns")
    if not all(map(_simple_file, snapshot.files)):
        raise NeedsSpark("data files of another writer")


def with_added_columns(snapshot: TableSnapshot, columns: Sequence[Column]) -> TableSnapshot:
    """The snapshot with new columns in its metadata. Raises NeedsSpark."""
    delta = schema_delta(columns, column_order(snapshot))
    if needs_column_mapping(column.name for column in delta.missing):
        raise NeedsSpark("column names with special characters")
    if any(column.initial is not None for column in delta.added):
        raise NeedsSpark("an added column with an initial value")
    types = [type_name(column.type) for column in delta.missing]
    if TIMESTAMP_NTZ in types and "timestampNtz" not in snapshot.protocol["writerFeatures"]:
        raise NeedsSpark("a table without the feature timestampNtz")
    schema = json.loads(snapshot.metadata["schemaString"])
    for column, kind in zip(delta.missing, types, strict=True):
        schema["fields"].append({"name": column.name, "type": kind, "nullable": True, "metadata": {}})
    return replace(snapshot, metadata={**snapshot.metadata, "schemaString": json.dumps(schema)})


def require_writable(snapshot: TableSnapshot) -> None:
    """Raises NeedsSpark."""
    if not _is_writable(snapshot):
        raise NeedsSpark("a table with other features or settings")


def _is_writable(snapshot: TableSnapshot) -> bool:
    protocol, metadata = snapshot.protocol, snapshot.metadata
    versions = protocol["minReaderVersion"], protocol["minWriterVersion"]
    features = {*protocol.get("readerFeatures", ()), *protocol.get("writerFeatures", ())}
    configuration: Mapping[str, str] = metadata.get("configuration", {})
    return (
        versions == (READER, WRITER)
        and "deletionVectors" in features <= FEATURES
        and configuration.get("delta.enableDeletionVectors") == "true"
        and all(name.startswith(SUPPORTED_SETTINGS) or not name.startswith("delta.") for name in configuration)
        and not metadata["partitionColumns"]
    )


def _simple_file(file: ActiveFile) -> bool:
    """The file is in the table's folder, has an unescaped name, and its number of rows is known."""
    vector = file.vector or {"storageType": IN_FILE}
    return file.rows is not None and not set("/%") & set(file.path) and vector["storageType"] in (IN_FILE, INLINE)


def column_order(snapshot: TableSnapshot) -> list[str]:
    return [name for name, _ in _columns(snapshot.metadata)]


def name_in_files(metadata: Mapping[str, Any], column: str) -> str:
    """The name of a column in data files and their statistics: another one in a table with column mapping."""
    for field in json.loads(metadata["schemaString"])["fields"]:
        if field["name"].lower() == column.lower():
            return str(field["metadata"].get(PHYSICAL_NAME, field["name"]))
    return column


def columns_with_statistics(metadata: Mapping[str, Any]) -> Sequence[str]:
    """The columns for which the table keeps minima and maxima."""
    configuration: Mapping[str, str] = metadata.get("configuration", {})
    names = [name for name, _ in _columns(metadata)]
    if listed := configuration.get(STATISTICS):
        return [name for name in names if is_listed(name, listed)]
    number = int(configuration.get("delta.dataSkippingNumIndexedCols", INDEXED_COLUMNS))
    return names if number < 0 else names[:number]


def expected_columns(schema: TableSchema, soft: bool) -> Iterator[tuple[str, str]]:
    """Names and Delta types of a target table."""
    for column in schema.columns:
        yield column.name, type_name(column.type)
    if schema.key:
        yield ORDER, "string"
    if soft:
        yield DELETED, "boolean"


def _columns(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names and types; the type is empty for columns with constraints or metadata rules, which are unsupported."""
    for field in json.loads(metadata["schemaString"])["fields"]:
        rules = not field["nullable"] or any(name.startswith(("delta.", "CURRENT_")) for name in field["metadata"])
        yield field["name"], "" if rules or not isinstance(field["type"], str) else field["type"]
