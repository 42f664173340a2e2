"""Splits of a table, read under the snapshot of its copy by any process, any number of times with the same rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.connectors.sources.postgres.client import PostgresClient
from airflow_cdc_provider.connectors.sources.postgres.csv_columns import InvalidCells, csv_tables
from airflow_cdc_provider.connectors.sources.postgres.publication import quoted
from airflow_cdc_provider.connectors.sources.postgres.text_order import UTF8
from airflow_cdc_provider.connectors.unrepresentable import INFINITE, NOT_A_NUMBER, OTHER_YEAR, unrepresentable_row
from airflow_cdc_provider.core.errors import BadRecordFound, Problem, SourceUnavailable
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.schema import TableSchema

if TYPE_CHECKING:
    import pyarrow as pa
    from psycopg import Connection

BEYOND = f"{INFINITE}, {OTHER_YEAR}, or {NOT_A_NUMBER}"

REWRITTEN = "the table was truncated or rewritten during its copy"
# In a session under the snapshot, queries of the catalog return rows of the snapshot, but its functions the current
# state. TRUNCATE and a rewriting ALTER do not respect older snapshots: the copy would miss rows without an error.
STILL_WHOLE = f"""
DO $check$ BEGIN
  IF EXISTS (
    SELECT FROM pg_class leaf
    WHERE (leaf.oid = {{oid}} OR leaf.oid IN (SELECT relid FROM pg_partition_tree({{oid}}::oid::regclass) WHERE isleaf))
      AND leaf.relkind = 'r' AND leaf.relfilenode IS DISTINCT FROM pg_relation_filenode(leaf.oid)
  ) THEN RAISE EXCEPTION '{REWRITTEN}';
  END IF;
END $check$
"""


LOCKED = "SELECT FROM {name} LIMIT 0"
"""Takes the lock of a reader on the table and its partitions, until the transaction ends. LOCK TABLE would require a
right on the whole table."""

IN_INDEX_ORDER = b"SET LOCAL enable_seqscan TO off; SET LOCAL max_parallel_workers_per_gather TO 0"
"""Several processes of the server would return the rows in any order."""


@dataclass(frozen=True)
class SnapshotTable:
    """A table under an exported snapshot. ``name``: quoted for SQL. ``limited``: the role may select some columns
    only, and none of the system's. ``encoding``: of the database."""

    table: str
    name: str
    oid: int
    snapshot: str
    limited: bool = False
    encoding: str = UTF8


@dataclass(frozen=True)
class TableSplit:
    """``rows``: a SELECT; ``within``: the condition on its columns that defines the split. ``indexed``: an index
    serves it."""

    viewed: SnapshotTable
    rows: str
    within: str
    indexed: bool = False

    def text(self) -> str:
        return json.dumps(to_plain(self))


def split_of(text: str) -> TableSplit:
    return from_plain(TableSplit, json.loads(text))


def read_split(client: PostgresClient, text: str, schema: TableSchema) -> Iterator[pa.Table]:
    """The columns of ``schema``. Raises SourceUnavailable (CPY008) if the table was rewritten, BadRecordMet (CPY009) if
    a row has a value that no target's type has."""
    split = split_of(text)
    columns = ", ".join(map(quoted, schema.names))
    rows = f"SELECT {columns} FROM ({split.rows}) AS rows WHERE {split.within}"
    with under_snapshot(client, split.viewed) as connection:
        if split.indexed:
            connection.execute(IN_INDEX_ORDER)
        with connection.cursor().copy(f"COPY ({rows}) TO STDOUT (FORMAT csv)".encode()) as lines:
            try:
                yield from csv_tables(lines, schema)
            except InvalidCells as error:
                raise BadRecordFound(unrepresentable_row(schema, error.columns, BEYOND)) from error


def under_view(read: SplitRead, view: SplitRead) -> SplitRead:
    """The splits, read under the snapshot of ``view``, another copy of the table."""
    viewed = split_of(view.splits[0]).viewed
    return replace(read, splits=tuple(replace(split_of(split), viewed=viewed).text() for split in read.splits))


def fetch_all(client: PostgresClient, copy: Copy, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query under the snapshot of the copy."""
    with under_snapshot(client, split_of(copy.read.splits[0]).viewed) as connection:
        return connection.execute(query.encode()).fetchall()


def with_rows(copy: Copy, rows: str, few: bool = False) -> SplitRead:
    """The splits of the copy, with another SELECT over the same table. ``few``: one split has them all."""
    splits = [replace(split_of(split), rows=rows) for split in copy.read.splits]
    splits = [replace(splits[0], within="TRUE")] if few else splits
    return replace(copy.read, splits=tuple(split.text() for split in splits))


@contextmanager
def under_snapshot(client: PostgresClient, viewed: SnapshotTable) -> Iterator[Connection[Any]]:
    """A session with the snapshot of the copy and a lock against TRUNCATE and ALTER."""
    from psycopg.errors import RaiseException

    with client.session("copy") as connection:
        connection.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        connection.execute(f"SET TRANSACTION SNAPSHOT '{viewed.snapshot}'".encode())
        connection.execute(LOCKED.format(name=viewed.name).encode())
        try:
            connection.execute(STILL_WHOLE.format(oid=viewed.oid).encode())
        except RaiseException as error:
            raise SourceUnavailable(_rewritten(viewed.table)) from error
        yield connection


def _rewritten(table: str) -> Problem:
    return Problem(
        "CPY008",
        REWRITTEN,
        where=table,
        found="TRUNCATE, or an ALTER that rewrites every row",
        do="nothing: the next attempt starts a new copy",
        data="nothing of this attempt is visible",
    )
