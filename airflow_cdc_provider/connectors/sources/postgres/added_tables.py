"""Adds tables to a publication. Which replicator added which is a line of the publication's comment:

    airflow-cdc-provider: {"shop": {"public.orders": 16452}}

Table and line are added in one transaction, so the line never claims a membership of somebody else: the number is the
oid of the membership, which changes when a table is removed and added again. Other lines of the comment stay."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.sources.postgres.catalog import read_catalog
from airflow_cdc_provider.connectors.sources.postgres.publication import (
    add_statement,
    members,
    memberships,
    not_a_member,
    quoted,
    require_publication,
    table_sql,
)
from airflow_cdc_provider.connectors.sources.postgres.schemas import CatalogTable
from airflow_cdc_provider.core.errors import raise_problems

if TYPE_CHECKING:
    from psycopg import Connection

PREFIX = "airflow-cdc-provider: "
COMMENT = "SELECT obj_description(oid, 'pg_publication') FROM pg_publication WHERE pubname = %s"
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('airflow-cdc-provider publication ' || %s, 0))"

Added = dict[str, dict[str, int]]
"""Replicator → table → oid of its membership."""


def ensure_members(
    connection: Connection[Any], publication: str, tables: Sequence[CatalogTable], replicator: str, location: str
) -> None:
    """Add the tables that are not in the publication. Raises CheckFailed with the statements that an owner must run
    instead."""
    from psycopg.errors import InsufficientPrivilege

    require_publication(connection, publication, [table.schema.table for table in tables], location)
    published = members(connection, publication)
    refused = []
    for table in tables:
        if table.schema.table in published:
            continue
        try:
            with connection.transaction():
                connection.execute(add_statement(publication, table).encode())
                _record(connection, publication, replicator, table.schema.table)
        except InsufficientPrivilege:
            refused.append(not_a_member(publication, table, location))
    raise_problems(refused)


def remove_added(connection: Connection[Any], publication: str, replicator: str) -> None:
    """Remove from the publication the tables that this replicator has added."""
    with connection.transaction():
        added = _locked(connection, publication)
        own = added_tables(connection, publication, replicator)
        for table in read_catalog(connection, own).tables.values():
            connection.execute(f"ALTER PUBLICATION {quoted(publication)} DROP TABLE {table_sql(table)}".encode())
        if replicator in added:
            _write(connection, publication, {name: tables for name, tables in added.items() if name != replicator})


def added_tables(connection: Connection[Any], publication: str, replicator: str) -> list[str]:
    """The tables that this replicator has added, unless they were removed or added again since."""
    added = _read(connection, publication).get(replicator, {})
    now = memberships(connection, publication, list(added))
    return sorted(table for table, membership in added.items() if now.get(table) == membership)


def rename_added(connection: Connection[Any], publication: str, former: str, name: str) -> None:
    with connection.transaction():
        added = _locked(connection, publication)
        if former in added:
            others = {one: tables for one, tables in added.items() if one != former}
            _write(connection, publication, {**others, name: {**added.get(name, {}), **added[former]}})


def _record(connection: Connection[Any], publication: str, replicator: str, table: str) -> None:
    """In the transaction that has added the table."""
    added = _locked(connection, publication)
    membership = memberships(connection, publication, [table])
    _write(connection, publication, {**added, replicator: {**added.get(replicator, {}), **membership}})


def _locked(connection: Connection[Any], publication: str) -> Added:
    """Until the end of the transaction, no other process changes the line."""
    connection.execute(LOCK, (publication,))
    return _read(connection, publication)


def _read(connection: Connection[Any], publication: str) -> Added:
    line = next((line for line in _lines(connection, publication) if line.startswith(PREFIX)), None)
    if line is None:
        return {}
    try:
        added: Added = json.loads(line.removeprefix(PREFIX))
    except json.JSONDecodeError:  # changed by hand
        return {}
    return added


def _write(connection: Connection[Any], publication: str, added: Mapping[str, Mapping[str, int]]) -> None:
    from psycopg.sql import Literal

    others = [line for line in _lines(connection, publication) if not line.startswith(PREFIX)]
    lines = [*others, *([PREFIX + json.dumps(added, sort_keys=True)] if added else [])]
    text = Literal("\n".join(lines)).as_string(connection) if lines else "NULL"
    connection.execute(f"COMMENT ON PUBLICATION {quoted(publication)} IS {text}".encode())


def _lines(connection: Connection[Any], publication: str) -> list[str]:
    row = connection.execute(COMMENT, (publication,)).fetchone()
    return str(row[0]).split("\n") if row and row[0] else []
