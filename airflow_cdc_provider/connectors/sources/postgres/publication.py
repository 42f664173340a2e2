"""The publication, which determines the tables that the stream carries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.sources.postgres.catalog import read_catalog
from airflow_cdc_provider.connectors.sources.postgres.schemas import CatalogTable
from airflow_cdc_provider.connectors.sources.postgres.table_names import OF_TABLES, in_sql
from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.core.table.source_names import in_shell, table_name

if TYPE_CHECKING:
    from psycopg import Connection

MEMBERS = """
SELECT DISTINCT p.schemaname, p.tablename
FROM pg_publication_tables p WHERE p.pubname = %s
"""


# A membership gets a new oid when its table is removed and added again, or gets another filter.
MEMBERSHIPS = (
    """
SELECT n.nspname, c.relname, coalesce(
    (SELECT max(r.oid) FROM pg_publication_rel r WHERE r.prpubid = p.oid
        AND (r.prrelid = c.oid OR r.prrelid IN (SELECT relid FROM pg_partition_ancestors(c.oid)))),
    {of_schema}
    CASE WHEN p.puballtables THEN p.oid END)::int8 AS membership
FROM pg_publication p, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE p.pubname = %(publication)s AND """
    + OF_TABLES
)
OF_SCHEMA = "(SELECT s.oid FROM pg_publication_namespace s WHERE s.pnpubid = p.oid AND s.pnnspid = c.relnamespace),"
FIRST_WITH_SCHEMAS = 150000
"""From this version on, whole schemas can be published."""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def table_sql(table: CatalogTable) -> str:
    return f"{quoted(table.namespace)}.{quoted(table.name)}"


def members(connection: Connection[Any], publication: str) -> set[str]:
    return {table_name(*row) for row in connection.execute(MEMBERS, (publication,))}


def memberships(connection: Connection[Any], publication: str, tables: Sequence[str]) -> dict[str, int]:
    """Oid of the membership of each table that is in the publication now."""
    of_schema = OF_SCHEMA if connection.info.server_version >= FIRST_WITH_SCHEMAS else ""
    query = MEMBERSHIPS.format(of_schema=of_schema)
    rows = connection.execute(query.encode(), {"publication": publication, **in_sql(tables)})
    return {table_name(schema, name): membership for schema, name, membership in rows if membership is not None}


def require_publication(connection: Connection[Any], publication: str, tables: Sequence[str], location: str) -> None:
    """Raises CheckFailed (SRC004). From PostgreSQL 18 on, reading a slot with a missing publication returns no changes
    and no error."""
    if connection.execute("SELECT 1 FROM pg_publication WHERE pubname = %s", (publication,)).fetchone() is None:
        existing = read_catalog(connection, tables).tables.values()
        raise CheckFailed(no_publication(publication, [table_sql(table) for table in existing], location))


def unpublished(
    connection: Connection[Any], publication: str, tables: Sequence[str], replicator: str, location: str
) -> dict[str, Problem]:
    """Those of ``tables`` that are not in the publication: the server skips their changes without an error."""
    published = memberships(connection, publication, tables)
    missing = [table for table in tables if table not in published]
    if not missing:
        return {}
    return {
        name: replace(
            not_a_member(publication, table, location),
            data="changes made while it is not in the publication are not in the stream",
            do=f"{add_statement(publication, table)}; a resync of the table follows, or with `reconcile: manual` run "
            f"airflow cdc resync {replicator} --table {in_shell(name)}",
        )
        for name, table in read_catalog(connection, missing).tables.items()
    }


def add_statement(publication: str, table: CatalogTable) -> str:
    return f"ALTER PUBLICATION {quoted(publication)} ADD TABLE {table_sql(table)}"


def not_a_member(publication: str, table: CatalogTable, location: str) -> Problem:
    return Problem(
        "SRC008",
        f"{table.schema.table} is not in publication {publication}",
        where=location,
        found="its changes are not sent",
        do=f"{add_statement(publication, table)};",
    )


def no_publication(publication: str, tables: Sequence[str], location: str) -> Problem:
    """``tables``: their names in SQL."""
    target = f"FOR TABLE {', '.join(tables)} " if tables else ""
    return Problem(
        "SRC004",
        f"publication {publication} does not exist",
        where=location,
        found="no such publication in this database",
        do=f"CREATE PUBLICATION {quoted(publication)} {target}WITH (publish_via_partition_root = true);",
        data="changes made while it is missing may not be in the stream: resync the tables that are replicating",
    )


def no_table(table: str, location: str) -> Problem:
    return Problem(
        "SRC019",
        f"table {table} does not exist",
        where=location,
        found="no such ordinary or partitioned table in this database",
        do="create it, or remove it from the definition",
    )
