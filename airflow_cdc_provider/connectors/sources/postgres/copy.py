"""A full copy of one table under an exported snapshot."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.copied.altered_tables import require_columns
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
from airflow_cdc_provider.connectors.sources.postgres.publication_settings import stream_settings
from airflow_cdc_provider.connectors.sources.postgres.schemas import CatalogTable
from airflow_cdc_provider.connectors.sources.postgres.select import CTID, condition_sql, select_list
from airflow_cdc_provider.connectors.sources.postgres.splits import SnapshotTable, TableSplit
from airflow_cdc_provider.connectors.sources.postgres.text_order import UTF8
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.spec.selected_columns import selected_schema
from airflow_cdc_provider.core.table.schema import Kind, Regime, TableSchema

if TYPE_CHECKING:
    from psycopg import Connection

ONE_PART_BYTES = 32 << 20
PART_BYTES = 160 << 20
"""A part becomes one file of about half this size."""

# The partitions of a table are read together, by block ranges; the largest partition determines the ranges.
SIZE = """
SELECT coalesce(max(pg_relation_size(leaf.oid)) / current_setting('block_size')::bigint, 0),
       coalesce(sum(pg_table_size(leaf.oid)), 0)::bigint
FROM pg_class leaf
WHERE leaf.relkind = 'r'
  AND (leaf.oid = %(oid)s OR leaf.oid IN (SELECT relid FROM pg_partition_tree(%(oid)s::oid::regclass) WHERE isleaf))
"""

STATISTICS = """
SELECT stats.attname::text,
       coalesce(max(CASE WHEN n_distinct < 0 THEN -n_distinct * c.reltuples ELSE n_distinct END), 0) > %(many)s,
       coalesce(min(abs(correlation)), 0) > %(ordered)s,
       max(CASE WHEN stats.attname = %(first)s AND NOT inherited THEN histogram_bounds::text END)
FROM pg_stats stats
JOIN pg_namespace n ON n.nspname = stats.schemaname
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = stats.tablename
WHERE c.oid = %(oid)s
GROUP BY stats.attname
"""
MANY_VALUES = 20_000
ORDERED = 0.99
"""Minimal correlation between the order of a column and that of the heap."""

INTEGERS = (Kind.INT16, Kind.INT32, Kind.INT64)


@contextmanager
def open_copy(
    client: PostgresClient, publication: str, task: TableTask, epoch: int, cores: int, lasting: bool = True
) -> Iterator[Copy]:
    """``lasting``: in splits that a later view of the table can continue, if that is as fast.

    Each session that reads a part locks the table against TRUNCATE and ALTER while it reads, and fails if one ran
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
            if name not in catalog.tables:
                raise CheckFailed(no_table(name, client.location))
            table = catalog.tables[name]
            copy = _copy(connection, table, snapshot, task, epoch, cores, lasting)
            members = memberships(connection, publication, [name])
            settings = stream_settings(connection, publication, [table])
            if not members:
                raise CheckFailed(not_a_member(publication, table, client.location))
            identities = read_identities(connection, [table], catalog.domains)
        yield replace(copy, identity=with_memberships(identities, members, settings)[name])


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


def key_ranges(schema: TableSchema, histogram: str, parts: int) -> tuple[str, ...]:
    """Conditions that split a table into ``parts`` of about the same number of rows: ranges of the leading key column,
    unbounded at both ends, so that a row belongs to one of them whatever its block is. ``histogram``: the server's, as
    an array. Empty if there is no use in splits."""
    bounds = [int(bound) for bound in histogram.strip("{}").split(",") if bound]
    edges = sorted({_between(bounds, part, parts) for part in range(1, parts)}) if len(bounds) > 1 else []
    if not edges:
        return ()
    name = quoted(schema.key[0])
    inner = [f"{name} >= {low} AND {name} < {high}" for low, high in pairwise(edges)]
    return (f"{name} < {edges[0]}", *inner, f"{name} >= {edges[-1]}")


def _between(bounds: Sequence[int], part: int, parts: int) -> int:
    """The value below which ``part`` of ``parts`` of the rows are."""
    number, rest = divmod(part * (len(bounds) - 1), parts)
    return bounds[number] + (bounds[number + 1] - bounds[number]) * rest // parts if rest else bounds[number]


def _copy(
    connection: Connection[Any],
    table: CatalogTable,
    snapshot: ExportedSnapshot,
    task: TableTask,
    epoch: int,
    cores: int,
    lasting: bool,
) -> Copy:
    schema = replace(selected_schema(task.rule, table.schema), table=task.table, key=task.schema.key)
    require_columns(schema, schema.names, (condition.column for condition in task.rule.where))
    row = connection.execute(SIZE, {"oid": table.oid}).fetchone()
    assert row is not None
    blocks, size = row
    limits = {"many": MANY_VALUES, "ordered": ORDERED, "first": next(iter(schema.key), "")}
    statistics = connection.execute(STATISTICS, {"oid": table.oid, **limits}).fetchall()
    many = tuple(str(name) for name, is_many, *_ in statistics if is_many and name in schema.names)
    ordered = tuple(str(name) for name, _, is_ordered, _ in statistics if is_ordered and name in schema.names)
    bounds = next((text for *_, text in statistics if text), "")
    encoding = connection.info.parameter_status("server_encoding") or UTF8
    where = " AND ".join(condition_sql(condition, schema, encoding) for condition in task.rule.where)
    columns, origin = select_list(schema, table.limited), _from(connection, table)
    query = f"SELECT {columns} FROM {origin}{f' WHERE {where}' if where else ''}"
    viewed = SnapshotTable(task.table, table_sql(table), table.oid, snapshot.name, table.limited, encoding)
    number = parts(blocks, size, cores)
    by_key = key_ranges(schema, bounds, number) if lasting and _is_read_by_key(schema, many, ordered) else ()
    ranges = by_key or block_ranges(blocks, 1 if table.limited else number)
    splits = [TableSplit(viewed, query, within, indexed=bool(by_key)) for within in ranges]
    return Copy(
        floor_key(epoch, snapshot.consistent_point),
        position_of(snapshot.consistent_point),
        schema,
        SplitRead(tuple(split.text() for split in splits), repeatable=True, lasting=bool(by_key)),
        _estimated_rows(connection, query) if blocks else 0,
        high_cardinality=many,
        clustered_by=ordered,
    )


def _estimated_rows(connection: Connection[Any], query: str) -> int:
    """The planner's estimate, which follows the size of the heap: the statistics of a table that was filled since the
    last ANALYZE count fewer rows, or none."""
    row = connection.execute(f"EXPLAIN (FORMAT JSON) {query}".encode()).fetchone()
    assert row is not None
    (explained,) = row[0] if isinstance(row[0], list) else json.loads(row[0])
    return int(explained["Plan"]["Plan Rows"])


def _is_read_by_key(schema: TableSchema, many: Sequence[str], ordered: Sequence[str]) -> bool:
    """Whether the heap has the order of the key, so that ranges of the key are read as fast as ranges of blocks. A key
    of the catalog has an index and is not NULL."""
    if not schema.key or schema.regime is not Regime.SINGLE:
        return False
    first = schema.key[0]
    return first in many and first in ordered and schema.column(first).type.kind in INTEGERS


def _from(connection: Connection[Any], table: CatalogTable) -> str:
    """ONLY leaves out the rows of inheritance children; a partitioned table has all its rows in its partitions."""
    row = connection.execute("SELECT relkind FROM pg_class WHERE oid = %s", (table.oid,)).fetchone()
    return table_sql(table) if row and row[0] in ("p", b"p") else f"ONLY {table_sql(table)}"
