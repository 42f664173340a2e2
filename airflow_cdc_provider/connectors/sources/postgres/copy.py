"""A full copy of one table under an exported snapshot."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.connectors.sources.postgres.added_tables import ensure_members
from airflow_cdc_provider.connectors.sources.postgres.catalog import read_catalog
from airflow_cdc_provider.connectors.sources.postgres.client import PostgresClient
from airflow_cdc_provider.connectors.sources.postgres.create_slots import ExportedSnapshot, exported_snapshot
from airflow_cdc_provider.connectors.sources.postgres.identities import read_identities, with_memberships
from airflow_cdc_provider.connectors.sources.postgres.positions import floor_key, position_of
from airflow_cdc_provider.connectors.sources.postgres.publication import (
    memberships,
    no_table,
    not_a_member,
    quoted,
    table_sql,
)
from airflow_cdc_provider.connectors.sources.postgres.schemas import CatalogTable
from airflow_cdc_provider.connectors.sources.postgres.select import CTID, condition_sql, select_list
from airflow_cdc_provider.connectors.sources.postgres.splits import SnapshotTable, TableSplit
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.spec.selected_columns import selected_schema

if TYPE_CHECKING:
    from psycopg import Connection

ONE_PART_BYTES = 32 << 20
PART_BYTES = 160 << 20
"""A part becomes one file of about half this size."""

# The partitions of a table are read together, by block ranges; the largest partition determines the ranges.
# ANALYZE counts the rows of a partitioned table both there and in its partitions.
SIZE = """
SELECT coalesce(max(pg_relation_size(leaf.oid)) / current_setting('block_size')::bigint, 0),
       coalesce(sum(pg_table_size(leaf.oid)), 0)::bigint,
       coalesce(sum(greatest(leaf.reltuples, 0)), 0)::bigint
FROM pg_class leaf
WHERE leaf.relkind = 'r'
  AND (leaf.oid = %(oid)s OR leaf.oid IN (SELECT relid FROM pg_partition_tree(%(oid)s::oid::regclass) WHERE isleaf))
"""

STATISTICS = """
SELECT stats.attname::text,
       coalesce(max(CASE WHEN n_distinct < 0 THEN -n_distinct * c.reltuples ELSE n_distinct END), 0) > %(many)s,
       coalesce(min(abs(correlation)), 0) > %(ordered)s
FROM pg_stats stats
JOIN pg_namespace n ON n.nspname = stats.schemaname
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = stats.tablename
WHERE c.oid = %(oid)s
GROUP BY stats.attname
"""
MANY_VALUES = 20_000
ORDERED = 0.99
"""Minimal correlation between the order of a column and that of the heap."""


@contextmanager
def open_copy(client: PostgresClient, publication: str, task: TableTask, epoch: int, cores: int) -> Iterator[Copy]:
    """Each session that reads a part locks the table against TRUNCATE and ALTER while it reads, and fails if one ran
    before it. There is no lock between parts, so such a statement waits no longer than one part takes.

    Raises SourceUnavailable if the slot cannot be created in time.
    """
    with client.session("publication") as connection:
        name = task.name_in_source
        catalog = read_catalog(connection, [name])
        if name not in catalog.tables:
            raise CheckFailed(no_table(name, client.location))
        ensure_members(connection, publication, [catalog.tables[name]], client.replicator, client.location)
    with exported_snapshot(client, f"cdc_copy_{secrets.token_hex(6)}") as snapshot:
        with client.session("copy") as connection:
            connection.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ")
            connection.execute(f"SET TRANSACTION SNAPSHOT '{snapshot.name}'".encode())
            catalog = read_catalog(connection, [name])
            table = catalog.tables[name]
            copy = _copy(connection, table, snapshot, task, epoch, cores)
            members = memberships(connection, publication, [name])
            if not members:
                raise CheckFailed(not_a_member(publication, table, client.location))
            identities = read_identities(connection, [table], catalog.domains)
        yield replace(copy, identity=with_memberships(identities, members)[name])


def parts(blocks: int, size: int, cores: int) -> int:
    """The number of parts: one for a small table, else a multiple of the cores, so that all are busy to the end."""
    if size <= ONE_PART_BYTES:
        return 1
    return min(blocks, cores * ceil(size / (PART_BYTES * cores)))


def block_ranges(blocks: int, parts: int) -> tuple[str, ...]:
    """Conditions that split a heap of ``blocks`` into ``parts``. The last is unbounded: the heap may have grown."""
    edges = [blocks * part // parts for part in range(1, parts)]
    if not edges:
        return ("TRUE",)
    bounds = [f"'({edge},0)'::tid" for edge in edges]
    name = quoted(CTID)
    inner = [f"{name} >= {low} AND {name} < {high}" for low, high in pairwise(bounds)]
    return (f"{name} < {bounds[0]}", *inner, f"{name} >= {bounds[-1]}")


def _copy(
    connection: Connection[Any],
    table: CatalogTable,
    snapshot: ExportedSnapshot,
    task: TableTask,
    epoch: int,
    cores: int,
) -> Copy:
    schema = replace(selected_schema(task.rule, table.schema), table=task.table, key=task.schema.key)
    row = connection.execute(SIZE, {"oid": table.oid}).fetchone()
    assert row is not None
    blocks, size, rows = row
    limits = {"many": MANY_VALUES, "ordered": ORDERED}
    statistics = connection.execute(STATISTICS, {"oid": table.oid, **limits}).fetchall()
    where = " AND ".join(condition_sql(condition, schema) for condition in task.rule.where)
    query = f"SELECT {select_list(schema)} FROM {_from(connection, table)}{f' WHERE {where}' if where else ''}"
    viewed = SnapshotTable(task.table, table_sql(table), table.oid, snapshot.name)
    ranges = block_ranges(blocks, parts(blocks, size, cores))
    return Copy(
        floor_key(epoch, snapshot.consistent_point),
        position_of(snapshot.consistent_point),
        schema,
        SplitRead(tuple(TableSplit(viewed, query, within).text() for within in ranges), repeatable=True),
        rows,
        high_cardinality=tuple(str(name) for name, many, _ in statistics if many and name in schema.names),
        clustered_by=tuple(str(name) for name, _, ordered in statistics if ordered and name in schema.names),
    )


def _from(connection: Connection[Any], table: CatalogTable) -> str:
    """ONLY leaves out the rows of inheritance children; a partitioned table has all its rows in its partitions."""
    row = connection.execute("SELECT relkind FROM pg_class WHERE oid = %s", (table.oid,)).fetchone()
    return table_sql(table) if row and row[0] in ("p", b"p") else f"ONLY {table_sql(table)}"
