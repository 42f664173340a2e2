"""Queries of the catalog: tables, columns, keys, types, and the identity of the server."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.sources.postgres.index_columns import NOT_NULL
from airflow_cdc_provider.connectors.sources.postgres.positions import parse_lsn
from airflow_cdc_provider.connectors.sources.postgres.schemas import Catalog, CatalogTable
from airflow_cdc_provider.connectors.sources.postgres.table_names import OF_TABLES, in_sql
from airflow_cdc_provider.connectors.sources.postgres.types import Domains, as_cell, converter, logical_type
from airflow_cdc_provider.connectors.unrepresentable import Unrepresentable
from airflow_cdc_provider.core.spec.other_kinds import OtherKind
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.source_names import table_name

if TYPE_CHECKING:
    from psycopg import Connection

OF_USERS = "n.nspname NOT LIKE 'pg\\_%%' AND n.nspname <> 'information_schema' AND c.relpersistence <> 't'"

# Partitions are left out: the table that is copied is their root.
TABLES = f"c.relkind IN ('r', 'p', 'f') AND NOT c.relispartition AND {OF_USERS}"

# A sequence of a column is no thing of its own.
OTHERS = f"""
SELECT n.nspname, c.relname, c.relkind::text, root.schema, root.name
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN LATERAL (
    SELECT rn.nspname AS schema, r.relname AS name FROM pg_class r JOIN pg_namespace rn ON rn.oid = r.relnamespace
    WHERE c.relispartition AND r.oid = pg_partition_root(c.oid)
) root ON true
WHERE {OF_USERS} AND (c.relkind IN ('v', 'm') OR c.relispartition AND c.relkind IN ('r', 'p', 'f')
  OR c.relkind = 'S' AND NOT EXISTS (
      SELECT FROM pg_depend d
      WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')))
"""
KINDS = {"v": "a view", "m": "a materialized view", "S": "a sequence"}

# Not by the text of the array: the delimiter of its elements depends on their type.
ONLY_ELEMENT = "array_to_string({}.attmissingval, '')"

# Rows older than a column have its attmissingval. A partitioned table has no rows, so all its partitions must have the
# same value.
COLUMNS = f"""
SELECT c.oid, n.nspname, c.relname, a.attname, a.atttypid, a.atttypmod, format_type(a.atttypid, a.atttypmod),
       {NOT_NULL}, a.attgenerated <> '', stored.missing, stored.value,
       NOT stored.missing AND (a.atthasdef OR a.attidentity <> '' OR a.attnotnull), a.attnum,
       has_table_privilege(c.oid, 'SELECT') OR has_column_privilege(c.oid, a.attnum, 'SELECT'),
       has_table_privilege(c.oid, 'SELECT')
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN LATERAL (
    SELECT a.atthasmissing AS missing, {ONLY_ELEMENT.format("a")} AS value WHERE c.relkind = 'r'
    UNION ALL
    SELECT coalesce(bool_and(l.atthasmissing), false) AND count(DISTINCT {ONLY_ELEMENT.format("l")}) = 1,
           min({ONLY_ELEMENT.format("l")})
    FROM pg_partition_tree(c.oid) leaf JOIN pg_attribute l ON l.attrelid = leaf.relid
    WHERE c.relkind = 'p' AND leaf.isleaf AND l.attname = a.attname AND NOT l.attisdropped
    HAVING c.relkind = 'p'
) stored ON true
WHERE {TABLES} AND (%(names)s::text[] IS NULL OR {OF_TABLES})
ORDER BY n.nspname, c.relname, a.attnum
"""

# Within a transaction two rows may have the same deferrable key, so it does not identify a row.
KEYS = f"""
SELECT i.indrelid, (array_agg(a.attname ORDER BY k.position))::text[]
FROM pg_index i
JOIN pg_class c ON c.oid = i.indrelid
CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (attnum, position)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
WHERE i.indisvalid AND i.indimmediate AND k.position <= i.indnkeyatts
  AND (i.indisprimary OR i.indisreplident AND c.relreplident = 'i')
GROUP BY i.indexrelid, i.indrelid, i.indisprimary
HAVING bool_and({NOT_NULL})
ORDER BY i.indisprimary
"""

DOMAINS = "SELECT oid, typbasetype, typtypmod FROM pg_type WHERE typtype = 'd'"

IDENTITY = """
SELECT (SELECT system_identifier FROM pg_control_system())::text,
       CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END,
       current_database()::text
"""


OIDS = f"""
SELECT c.oid::int8 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE {OF_TABLES}
"""
NAMES = f"""
SELECT c.oid::int8, n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE {TABLES} AND c.oid::int8 = ANY (%s)
"""
COMMENTS = f"""
SELECT n.nspname, c.relname, a.attname::text, d.description
FROM pg_description d
JOIN pg_class c ON c.oid = d.objoid AND d.classoid = 'pg_class'::regclass
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.objsubid AND a.attnum > 0
WHERE {OF_TABLES}
"""
EXISTS = f"""
SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
               WHERE {OF_TABLES} OR c.oid::text = %(oid)s)
"""


def exists(connection: Connection[Any], table: str, oid: str) -> bool:
    """Whether there is a table of this name or ``oid``. Everybody may read this part of the catalog."""
    row = connection.execute(EXISTS, {**in_sql([table]), "oid": oid}).fetchone()
    assert row is not None
    return bool(row[0])


def table_oids(connection: Connection[Any], tables: Sequence[str]) -> set[int]:
    return {oid for (oid,) in connection.execute(OIDS, in_sql(tables))}


def table_names(connection: Connection[Any], oids: Sequence[int]) -> dict[int, str]:
    rows = connection.execute(NAMES, [list(oids)])
    return {oid: table_name(namespace, name) for oid, namespace, name in rows}


def read_comments(connection: Connection[Any], tables: Sequence[str]) -> dict[str, dict[str, str]]:
    """Table → column → comment."""
    found: dict[str, dict[str, str]] = {}
    for namespace, name, column, text in connection.execute(COMMENTS, in_sql(tables)):
        found.setdefault(table_name(namespace, name), {})[column] = text
    return found


def read_other_kinds(connection: Connection[Any]) -> dict[str, OtherKind]:
    """What the database has beside tables."""
    return {
        table_name(namespace, name): OtherKind("a partition", table_name(*root)) if root[1] else OtherKind(KINDS[kind])
        for namespace, name, kind, *root in connection.execute(OTHERS)
    }


def read_identity(connection: Connection[Any]) -> dict[str, str]:
    row = connection.execute(IDENTITY).fetchone()
    assert row is not None
    return {"system_identifier": row[0], "timeline": row[1], "database": row[2]}


def read_clock_and_end(connection: Connection[Any]) -> tuple[datetime, int]:
    """The server's clock, and the end of its WAL on disk."""
    row = connection.execute("SELECT clock_timestamp(), pg_current_wal_flush_lsn()::text").fetchone()
    assert row is not None
    return row[0], parse_lsn(row[1])


def read_catalog(connection: Connection[Any], tables: Sequence[str] | None = None) -> Catalog:
    """All tables that can be copied, or those of ``tables`` that exist."""
    domains = {oid: (base, typmod) for oid, base, typmod in connection.execute(DOMAINS)}
    keys = defaultdict[int, list[tuple[str, ...]]](list)
    for oid, names in connection.execute(KEYS):
        keys[oid].append(tuple(names))
    named = {"schemas": None, "names": None} if tables is None else in_sql(tables)
    rows = connection.execute(COLUMNS, named).fetchall()
    described = [
        _catalog_table(oid, namespace, name, list(columns), keys[oid], domains)
        for (oid, namespace, name), columns in groupby(rows, key=lambda row: (row[0], row[1], row[2]))
    ]
    return Catalog({table.schema.table: table for table in described}, domains)


def _catalog_table(
    oid: int, namespace: str, name: str, rows: list[Any], keys: Sequence[tuple[str, ...]], domains: Domains
) -> CatalogTable:
    """``keys``: the primary key is the last."""
    columns, generated, unknown_initial, hidden = [], set(), set(), set()
    for row in rows:
        _, _, _, column, type_oid, typmod, native, not_null, is_generated, missing, value, is_unknown, number, *_ = row
        if column is None:
            continue
        if not row[-2]:
            hidden.add(column)
        if is_generated:
            generated.add(column)
            continue
        if is_unknown:
            unknown_initial.add(column)
        kind = logical_type(type_oid, typmod, domains)
        initial = None
        if missing and value is not None:
            try:
                initial = converter(kind.kind)(as_cell(value))
            except Unrepresentable:
                unknown_initial.add(column)
        columns.append(Column(column, kind, not not_null, native, initial, f"{oid}.{number}"))
    key = next((names for names in reversed(keys) if generated.isdisjoint(names)), ())
    return CatalogTable(
        oid,
        namespace,
        name,
        TableSchema(table_name(namespace, name), tuple(columns), key),
        frozenset(generated),
        frozenset(unknown_initial),
        generated_key=keys[-1] if keys and not key else (),
        limited=not rows[0][-1],
        hidden=frozenset(hidden),
    )
