"""How a Delta table is made and grown.

Only table features that the fence's library can append under are switched on. Tried with deltalake 1.6.6 on tables of
Delta 4.4: deletion vectors, timestampNtz, column mapping, v2 checkpoints and change data feed pass; clustering, type
widening, row tracking and in-commit timestamps do not. So a table is laid out by sorting, never by CLUSTER BY, and a
widened column needs a resync.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from airflow_cdc_provider.core.table.schema import Column, Kind, TableSchema
from airflow_cdc_provider.targets.delta.names import NEEDS_COLUMN_MAPPING, path_table
from airflow_cdc_provider.targets.sparksql.names import quoted, text_literal
from airflow_cdc_provider.targets.sparksql.types import TEXTUAL, column_type

UNFENCEABLE_FEATURES = frozenset({"clustering", "domainMetadata", "typeWidening", "rowTracking", "inCommitTimestamp"})

COLUMN_MAPPING = "delta.columnMapping.mode"
STATISTICS = "delta.dataSkippingStatsColumns"

CHECKPOINT_INTERVAL_COMMITS = 25
"""Every so many commits Delta writes a checkpoint within a commit: often enough to open the table fast, seldom enough
not to slow every second merge of a table that changes by the minute."""

STATISTICS_COLUMNS = 32
"""As many columns as Delta itself keeps minima and maxima of."""

UNORDERED = frozenset({Kind.BOOLEAN, Kind.BYTES})
"""Delta refuses statistics on them."""


def table_properties(schema: TableSchema, layout: Sequence[str]) -> dict[str, str]:
    """``layout``: the columns that must have statistics because bounds are put on them. Other text has none: a quarter
    of the work of a copy would go into them, and hardly a file is skipped by them."""
    properties = {
        "delta.enableDeletionVectors": "true",
        "delta.checkpointInterval": str(CHECKPOINT_INTERVAL_COMMITS),
    }
    kinds = {column.name: column.type.kind for column in schema.columns}
    measured = [name for name in schema.names if kinds[name] not in TEXTUAL | UNORDERED][:STATISTICS_COLUMNS]
    bounded = [name for name in layout if kinds[name] not in UNORDERED]
    if names := dict.fromkeys((*bounded, *measured)):
        properties[STATISTICS] = ",".join(quoted(name) for name in names)
    else:
        properties["delta.dataSkippingNumIndexedCols"] = "0"
    if needs_column_mapping(schema.names):
        properties[COLUMN_MAPPING] = "name"
    return properties


def needs_column_mapping(names: Iterable[str]) -> bool:
    return any(NEEDS_COLUMN_MAPPING & set(name) for name in names)


def switch_on_column_mapping(path: str) -> str:
    """For a table that was made without: a change of its metadata alone, and for good."""
    return f"ALTER TABLE {path_table(path)} SET TBLPROPERTIES ('{COLUMN_MAPPING}' = 'name')"


def is_listed(name: str, listed: str) -> bool:
    """Whether a list of columns in a table's configuration has this one."""
    return quoted(name) in listed or name in listed.split(",")


def without_statistics(
    path: str, configuration: Mapping[str, str], before: Iterable[str], after: Collection[str]
) -> str:
    """For a table with the columns ``before``, ahead of a copy that has those ``after``: Delta refuses one without a
    column that the table keeps statistics of. Empty where the copy has them all."""
    names = [name for name in before if is_listed(name, configuration.get(STATISTICS, ""))]
    kept = [quoted(name) for name in names if name in after]
    if len(kept) == len(names):
        return ""
    if not kept:
        return f"ALTER TABLE {path_table(path)} UNSET TBLPROPERTIES ('{STATISTICS}')"
    return f"ALTER TABLE {path_table(path)} SET TBLPROPERTIES ('{STATISTICS}' = {text_literal(','.join(kept))})"


def add_columns(path: str, columns: Sequence[Column]) -> str:
    listed = ", ".join(f"{quoted(column.name)} {column_type(column.type)}" for column in columns)
    return f"ALTER TABLE {path_table(path)} ADD COLUMNS ({listed})"


def register(catalog: str, target_table: str, path: str) -> str:
    """A name for the table in Spark's catalog; the folder stays the truth."""
    return f"CREATE TABLE IF NOT EXISTS {catalog_name(catalog, target_table)} USING delta LOCATION {text_literal(path)}"


def catalog_name(catalog: str, target_table: str) -> str:
    return ".".join(map(quoted, (*catalog.split("."), target_table)))
