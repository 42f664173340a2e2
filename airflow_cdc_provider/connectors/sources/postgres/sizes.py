"""The sizes of tables, from the statistics that VACUUM and ANALYZE keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.sources.postgres.table_names import OF_TABLES, in_sql
from airflow_cdc_provider.core.table.source_names import table_name
from airflow_cdc_provider.core.table.table_size import TableSize

if TYPE_CHECKING:
    from psycopg import Connection

# The rows of a partitioned table are in its partitions. A table that was never analyzed has reltuples -1.
SIZES = f"""
SELECT n.nspname, c.relname,
       CASE WHEN bool_and(leaf.reltuples >= 0) THEN sum(leaf.reltuples)::bigint END,
       sum(pg_table_size(leaf.oid))::bigint
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL (SELECT c.oid UNION SELECT relid FROM pg_partition_tree(c.oid)) part (oid)
JOIN pg_class leaf ON leaf.oid = part.oid AND leaf.relkind = 'r'
WHERE {OF_TABLES}
GROUP BY 1, 2
"""


def read_sizes(connection: Connection[Any], tables: Sequence[str]) -> dict[str, TableSize]:
    found = connection.execute(SIZES, in_sql(tables))
    return {table_name(schema, name): TableSize(rows, size) for schema, name, rows, size in found}
