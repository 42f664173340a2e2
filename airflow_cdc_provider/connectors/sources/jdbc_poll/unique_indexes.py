"""Which unique indexes and primary keys a server enforces for each row.

A server also lists others: disabled ones, declared ones that it never compared with the rows, unfinished ones. Drivers
list all of them, so each system has its own query here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import sqlalchemy as sa

IN_POSTGRES = """
SELECT i.indexrelid::int8, CASE
  WHEN i.indcollation[part.number] = a.attcollation OR COALESCE(o.collisdeterministic, true) THEN a.attname::text
END
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN generate_series(0, i.indnkeyatts - 1) AS part (number)
LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[part.number] AND a.attnum > 0
LEFT JOIN pg_collation o ON o.oid = a.attcollation
WHERE n.nspname = :namespace AND c.relname = :name AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
"""

IN_MYSQL = """
SELECT index_name, column_name FROM information_schema.statistics
WHERE table_schema = :namespace AND table_name = :name AND non_unique = 0
"""

IN_SQL_SERVER = """
SELECT i.index_id, c.name
FROM sys.indexes i
JOIN sys.objects o ON o.object_id = i.object_id
JOIN sys.schemas s ON s.schema_id = o.schema_id
JOIN sys.index_columns k ON k.object_id = i.object_id AND k.index_id = i.index_id
JOIN sys.columns c ON c.object_id = k.object_id AND c.column_id = k.column_id
WHERE s.name = :namespace AND o.name = :name AND k.key_ordinal > 0
  AND i.is_unique = 1 AND i.has_filter = 0 AND i.is_disabled = 0 AND i.is_hypothetical = 0
"""

UNUSABLE_IN_ORACLE = """
(i.status = 'UNUSABLE' OR EXISTS (
  SELECT 1 FROM all_ind_partitions p
  WHERE p.index_owner = i.owner AND p.index_name = i.index_name AND p.status = 'UNUSABLE'
) OR EXISTS (
  SELECT 1 FROM all_ind_subpartitions p
  WHERE p.index_owner = i.owner AND p.index_name = i.index_name AND p.status = 'UNUSABLE'
))
"""
"""A load may write rows with equal keys beside such an index, and leave the constraint enabled."""

IN_ORACLE = f"""
SELECT i.owner || ' ' || i.index_name, k.column_name
FROM all_indexes i JOIN all_ind_columns k ON k.index_owner = i.owner AND k.index_name = i.index_name
WHERE i.table_owner = :namespace AND i.table_name = :name AND i.uniqueness = 'UNIQUE'
  AND i.index_type NOT LIKE 'FUNCTION-BASED%' AND NOT {UNUSABLE_IN_ORACLE}
"""

IN_SQLITE = """
SELECT i.name, c.name FROM pragma_index_list(:name, :namespace) i JOIN pragma_index_info(i.name, :namespace) c
WHERE i."unique" AND NOT i.partial
"""

UNIQUE: Mapping[str, str] = {
    "postgresql": IN_POSTGRES,
    "mysql": IN_MYSQL,
    "mariadb": IN_MYSQL,
    "mssql": IN_SQL_SERVER,
    "oracle": IN_ORACLE,
    "sqlite": IN_SQLITE,
}
"""Index and column; NULL instead of a column that is no proof, such as an expression. Pages compare
keys in the collation of the column: if that calls two texts equal, an index of another one is no proof."""

UNENFORCED: Mapping[str, str] = {
    "postgresql": """
SELECT c.relname::text
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = :namespace AND i.indisprimary AND NOT i.indisvalid
""",
    "mssql": """
SELECT o.name
FROM sys.indexes i JOIN sys.objects o ON o.object_id = i.object_id JOIN sys.schemas s ON s.schema_id = o.schema_id
WHERE s.name = :namespace AND i.is_primary_key = 1 AND i.is_disabled = 1
""",
    "oracle": f"""
SELECT c.table_name FROM all_constraints c
WHERE c.owner = :namespace AND c.constraint_type = 'P' AND (
  c.status <> 'ENABLED' OR c.validated <> 'VALIDATED' OR EXISTS (
    SELECT 1 FROM all_indexes i
    WHERE i.owner = COALESCE(c.index_owner, c.owner) AND i.index_name = c.index_name AND {UNUSABLE_IN_ORACLE}
))
""",
}
"""Tables with a primary key that need not hold for each row. PostgreSQL: some partitions may lack it."""

NAME: Mapping[str, str] = {"postgresql": "c.relname", "mssql": "o.name", "oracle": "c.table_name"}
"""Of a table in these queries."""


def unique_indexes(connection: sa.Connection, namespace: str, name: str) -> Iterator[frozenset[str]]:
    """The columns of each index that is unique over all rows of a table. NULLs in them may be equal."""
    names = {"namespace": _stored(connection, namespace), "name": _stored(connection, name)}
    columns = defaultdict[object, set[str | None]](set)
    for index, column in connection.execute(sa.text(UNIQUE[connection.dialect.name]), names):
        columns[index].add(column and _shown(connection, column))
    for found in columns.values():
        if None not in found:
            yield frozenset(name for name in found if name)


def unenforced_keys(connection: sa.Connection, namespace: str, name: str = "") -> frozenset[str]:
    """Tables of a schema whose primary key does not prove that their rows are unique; only ``name`` if it is set."""
    system = connection.dialect.name
    if system not in UNENFORCED:
        return frozenset()
    query, names = UNENFORCED[system], {"namespace": _stored(connection, namespace)}
    if name:
        query, names = f"{query} AND {NAME[system]} = :name", {**names, "name": _stored(connection, name)}
    tables = connection.execute(sa.text(query), names)
    return frozenset(_shown(connection, table) for (table,) in tables)


def _stored(connection: sa.Connection, name: str) -> str:
    """Oracle stores in capitals what SQLAlchemy shows in small letters."""
    dialect = connection.dialect
    return str(dialect.denormalize_name(name)) if dialect.requires_name_normalize else name


def _shown(connection: sa.Connection, name: str) -> str:
    dialect = connection.dialect
    return str(dialect.normalize_name(name)) if dialect.requires_name_normalize else name
