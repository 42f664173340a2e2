"""The publication: which tables the stream carries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.postgres.schemas import Catalogue, Described
from airflow_cdc_provider.core.errors import CheckFailed, Problem

if TYPE_CHECKING:
    from psycopg import Connection

MEMBERS = """
SELECT DISTINCT p.schemaname || '.' || p.tablename
FROM pg_publication_tables p WHERE p.pubname = %s
"""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def table_sql(table: Described) -> str:
    return f"{quoted(table.namespace)}.{quoted(table.name)}"


def members(connection: Connection[Any], publication: str) -> set[str]:
    return {row[0] for row in connection.execute(MEMBERS, (publication,))}


def ensure_members(
    connection: Connection[Any], publication: str, tables: Sequence[str], catalogue: Catalogue, place: str
) -> None:
    """Put the tables into the publication. Raises CheckFailed with the statements an owner must run instead."""
    from psycopg.errors import InsufficientPrivilege

    if connection.execute("SELECT 1 FROM pg_publication WHERE pubname = %s", (publication,)).fetchone() is None:
        raise CheckFailed(no_publication(publication, [catalogue.tables[table] for table in tables], place))
    there = members(connection, publication)
    refused = []
    for table in tables:
        if table in there:
            continue
        statement = add_statement(publication, catalogue.tables[table])
        try:
            connection.execute(statement.encode())
        except InsufficientPrivilege:
            refused.append(not_a_member(publication, catalogue.tables[table], place))
    if refused:
        raise CheckFailed(*refused)


def add_statement(publication: str, table: Described) -> str:
    return f"ALTER PUBLICATION {quoted(publication)} ADD TABLE {table_sql(table)}"


def not_a_member(publication: str, table: Described, place: str) -> Problem:
    return Problem(
        "SRC008",
        f"{table.schema.table} is not in publication {publication}",
        where=place,
        found="its changes are not sent",
        do=f"{add_statement(publication, table)};",
    )


def no_publication(publication: str, tables: Sequence[Described], place: str) -> Problem:
    listed = ", ".join(table_sql(table) for table in tables)
    return Problem(
        "SRC004",
        f"there is no publication {publication}",
        where=place,
        found="no such publication in this database",
        do=f"CREATE PUBLICATION {quoted(publication)} FOR TABLE {listed} WITH (publish_via_partition_root = true);",
    )


def no_table(table: str, place: str) -> Problem:
    return Problem(
        "SRC019",
        f"there is no table {table}",
        where=place,
        found="no such ordinary or partitioned table in this database",
        do="create it, or take it out of the definition",
    )
