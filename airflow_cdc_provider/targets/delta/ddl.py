"""DDL of Delta tables.

Only table features under which fences can be committed without a JVM are enabled. Tested with deltalake 1.6.6 on tables
of Delta 4.4: deletion vectors, timestampNtz, column mapping, v2 checkpoints and change data feed work; clustering, row
tracking and in-commit timestamps do not. So tables are laid out by sorting, never by CLUSTER BY. Type widening does not
either; the provider writes the fences of such tables itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from airflow_cdc_provider.core.table.schema import Column, Kind, TableSchema
from airflow_cdc_provider.targets.delta.names import NEEDS_COLUMN_MAPPING, path_table
from airflow_cdc_provider.targets.sparksql.names import quoted, text_literal
from airflow_cdc_provider.targets.sparksql.types import TEXTUAL, column_type

UNFENCEABLE_FEATURES = frozenset(
    {"clustering", "domainMetadata", "rowTracking", "inCommitTimestamp", "collations", "collations-preview"}
)

COLUMN_MAPPING = "delta.columnMapping.mode"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
STATISTICS = "delta.dataSkippingStatsColumns"

CHECKPOINT_INTERVAL_COMMITS = 25
"""Delta writes a checkpoint within a commit at this interval: often enough to open the table fast, rarely enough not to
slow every second merge of a table that changes every minute."""

STATISTICS_COLUMNS = 32
"""Delta's own default number of columns with statistics."""

WITHOUT_STATISTICS = frozenset({Kind.BOOLEAN, Kind.BYTES})
"""Delta rejects statistics on these types."""


def table_properties(schema: TableSchema, layout: Sequence[str]) -> dict[str, str]:
    """``layout``: the columns that must have statistics because merges bound them. Other text columns have none: they
    would cost a quarter of the time of a copy, and few files are skipped by them."""
    properties = {
        "delta.enableDeletionVectors": "true",
        "delta.checkpointInterval": str(CHECKPOINT_INTERVAL_COMMITS),
    }
    kinds = {column.name: column.type.kind for column in schema.columns}
    other = [name for name in schema.names if kinds[name] not in TEXTUAL | WITHOUT_STATISTICS][:STATISTICS_COLUMNS]
    bounded = [name for name in layout if kinds[name] not in WITHOUT_STATISTICS]
    if names := dict.fromkeys((*bounded, *other)):
        properties[STATISTICS] = ",".join(quoted(name) for name in names)
    else:
        properties["delta.dataSkippingNumIndexedCols"] = "0"
    if needs_column_mapping(schema.names):
        properties[COLUMN_MAPPING] = "name"
    return properties


def needs_column_mapping(names: Iterable[str]) -> bool:
    return any(NEEDS_COLUMN_MAPPING & set(name) for name in names)


def enable_column_mapping(path: str) -> str:
    """For a table created without column mapping. Changes its metadata only, and cannot be undone."""
    return f"ALTER TABLE {path_table(path)} SET TBLPROPERTIES ('{COLUMN_MAPPING}' = 'name')"


def is_listed(name: str, listed: str) -> bool:
    """Whether a list of columns in a table's configuration contains this one."""
    return quoted(name) in listed or name in listed.split(",")


def drop_statistics(path: str, configuration: Mapping[str, str], current: Iterable[str], new: Collection[str]) -> str:
    """Required before a copy replaces the ``current`` columns by ``new`` ones: Delta rejects a copy without a column
    that has statistics. Empty if the copy has all of them."""
    names = [name for name in current if is_listed(name, configuration.get(STATISTICS, ""))]
    kept = [quoted(name) for name in names if name in new]
    if len(kept) == len(names):
        return ""
    if not kept:
        return f"ALTER TABLE {path_table(path)} UNSET TBLPROPERTIES ('{STATISTICS}')"
    return f"ALTER TABLE {path_table(path)} SET TBLPROPERTIES ('{STATISTICS}' = {text_literal(','.join(kept))})"


def add_columns(path: str, columns: Sequence[Column]) -> str:
    listed = ", ".join(f"{quoted(column.name)} {column_type(column.type)}" for column in columns)
    return f"ALTER TABLE {path_table(path)} ADD COLUMNS ({listed})"


def register(catalog: str, target_table: str, path: str) -> str:
    """Registers the table in Spark's catalog; the folder remains authoritative."""
    return f"CREATE TABLE IF NOT EXISTS {catalog_name(catalog, target_table)} USING delta LOCATION {text_literal(path)}"


def catalog_name(catalog: str, target_table: str) -> str:
    return ".".join(map(quoted, (*catalog.split("."), target_table)))
