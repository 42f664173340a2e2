"""The properties of the publication and of each table that ``check`` requires."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_cdc_provider.connectors.sources.postgres.index_columns import IN_KEY, NOT_NULL
from airflow_cdc_provider.connectors.sources.postgres.publication import quoted
from airflow_cdc_provider.connectors.sources.postgres.table_names import OF_TABLES, in_sql
from airflow_cdc_provider.core.table.source_names import table_name

if TYPE_CHECKING:
    from psycopg import Connection

T = TypeVar("T")

ALL_OPERATIONS = "insert, update, delete, truncate"

# Newer versions have more columns in these catalogs; as JSON a missing one is NULL.
PUBLICATION = """
SELECT concat_ws(', ', CASE WHEN p.pubinsert THEN 'insert' END, CASE WHEN p.pubupdate THEN 'update' END,
                 CASE WHEN p.pubdelete THEN 'delete' END, CASE WHEN p.pubtruncate THEN 'truncate' END) AS operations,
       p.pubviaroot AS via_root, p.xmin::text AS altered, p.pubowner::text AS owner,
       coalesce(to_jsonb(p) ->> 'pubgencols', 'n') NOT IN ('n', 'false') AS generated
FROM pg_publication p WHERE p.pubname = %s
"""

TABLES = (
    f"""
SELECT n.nspname::text AS namespace, c.relname::text AS name,
       c.relkind::text AS kind,
       c.relispartition AS partition, c.relpersistence::text AS persistence, c.relreplident::text AS identity,
       has_schema_privilege(n.oid, 'USAGE') AS may_enter, has_table_privilege(c.oid, 'SELECT') AS may_select,
       ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0
             AND NOT a.attisdropped AND has_column_privilege(c.oid, a.attnum, 'SELECT')) AS readable,
       row_security_active(c.oid) AS hidden_rows,
       c.relkind IN ('r', 'p') AND EXISTS (
           SELECT FROM pg_publication_tables t
           WHERE t.pubname = %(publication)s AND t.schemaname = n.nspname AND t.tablename = c.relname) AS published,
       EXISTS (SELECT FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
               WHERE p.pubname = %(publication)s AND r.prrelid = ANY (part.oids)
                 AND (to_jsonb(r) ->> 'prqual' IS NOT NULL OR to_jsonb(r) ->> 'prattrs' IS NOT NULL)) AS narrowed,
       ARRAY(SELECT a.attname::text FROM pg_index i
             JOIN pg_attribute a ON a.attrelid = c.oid AND {IN_KEY}
             WHERE i.indrelid = c.oid AND i.indisprimary AND i.indimmediate) AS primary_key,
       (SELECT coalesce(jsonb_agg(columns), '[]') FROM (
           SELECT jsonb_agg(a.attname::text ORDER BY k.position) AS columns
           FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (attnum, position)
           LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
           WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
             AND k.position <= i.indnkeyatts
           GROUP BY i.indexrelid HAVING bool_and(k.attnum > 0 AND {NOT_NULL})) unique_index) AS unique_keys,
       ARRAY(SELECT a.attname::text FROM pg_index i
             JOIN pg_attribute a ON a.attrelid = c.oid AND {IN_KEY}
             WHERE i.indrelid = c.oid AND i.indisprimary AND NOT i.indimmediate) AS deferrable_key,
       ARRAY(SELECT a.attname::text FROM pg_index i
             JOIN pg_attribute a ON a.attrelid = c.oid AND {IN_KEY}
             WHERE i.indrelid = c.oid AND i.indisreplident) AS identity_index,
       ARRAY(SELECT format('%%I.%%I', ln.nspname, l.relname)
             FROM pg_class l JOIN pg_namespace ln ON ln.oid = l.relnamespace
             WHERE l.oid = ANY (part.oids) AND l.oid <> c.oid AND l.relkind = 'r'
               AND l.relreplident <> c.relreplident ORDER BY 1) AS mismatched_partitions,
       ARRAY(SELECT format('%%I.%%I', ln.nspname, l.relname)
             FROM pg_class l JOIN pg_namespace ln ON ln.oid = l.relnamespace
             WHERE l.oid = ANY (part.oids) AND l.oid <> c.oid AND l.relkind = 'f' ORDER BY 1) AS foreign_parts,
       ARRAY(SELECT format('%%I.%%I', ln.nspname, l.relname)
             FROM pg_class l JOIN pg_namespace ln ON ln.oid = l.relnamespace
             WHERE l.oid = ANY (part.oids) AND l.oid <> c.oid AND l.relkind = 'r' AND l.relpersistence <> 'p'
             ORDER BY 1) AS unlogged_parts
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL (SELECT coalesce(array_agg(relid::oid), '{{}}') || c.oid AS oids FROM pg_partition_tree(c.oid)) part
WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') AND """
    + OF_TABLES
)


@dataclass(frozen=True)
class PublicationFacts:
    """``operations``: those that it sends. ``altered``: changes with each statement that alters it, except those about
    its tables. ``generated``: it also publishes generated columns."""

    operations: str
    via_root: bool
    altered: str
    owner: str
    generated: bool

    @property
    def all_operations(self) -> bool:
        return self.operations == ALL_OPERATIONS


@dataclass(frozen=True)
class TableFacts:
    """``kind``, ``persistence`` and ``identity`` are the catalog's letters. ``mismatched_partitions`` have another
    replica identity than their root. ``unique_keys``: the columns of each unique index without nullable columns.
    ``narrowed``: the publication has only some of the rows or columns."""

    namespace: str
    name: str
    kind: str
    partition: bool
    persistence: str
    identity: str
    may_enter: bool
    may_select: bool
    readable: list[str]
    hidden_rows: bool
    published: bool
    narrowed: bool
    primary_key: list[str]
    unique_keys: list[list[str]]
    deferrable_key: list[str]
    identity_index: list[str]
    mismatched_partitions: list[str]
    foreign_parts: list[str]
    unlogged_parts: list[str]

    @property
    def table(self) -> str:
        return table_name(self.namespace, self.name)

    @property
    def sql(self) -> str:
        return f"{quoted(self.namespace)}.{quoted(self.name)}"

    def identity_columns(self) -> frozenset[str] | None:
        """Columns whose old values the stream contains; None for all."""
        match self.identity:
            case "f":
                return None
            case "d":
                return frozenset(self.primary_key)
            case "i":
                return frozenset(self.identity_index)
            case _:
                return frozenset()


def read_publication(connection: Connection[Any], name: str) -> PublicationFacts | None:
    return typed_row(connection, PublicationFacts, PUBLICATION, name)


def read_table_facts(connection: Connection[Any], publication: str, tables: Sequence[str]) -> dict[str, TableFacts]:
    from psycopg.rows import class_row

    with connection.cursor(row_factory=class_row(TableFacts)) as cursor:
        cursor.execute(TABLES.encode(), {"publication": publication, **in_sql(tables)})
        return {facts.table: facts for facts in cursor}


def read_role(connection: Connection[Any]) -> str:
    row = connection.execute("SELECT current_user::text").fetchone()
    assert row is not None
    return str(row[0])


def typed_row(connection: Connection[Any], kind: type[T], query: str, *parameters: object) -> T | None:
    """The first row as a dataclass whose fields are the names of the columns."""
    from psycopg.rows import class_row

    with connection.cursor(row_factory=class_row(kind)) as cursor:
        return cursor.execute(query.encode(), parameters or None).fetchone()
