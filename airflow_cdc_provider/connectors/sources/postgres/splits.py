"""Parts of a table, read under the snapshot of its copy by any process, any number of times with the same rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.connectors.sources.postgres.client import PostgresClient
from airflow_cdc_provider.connectors.sources.postgres.csv_columns import NoneOfItsColumn, csv_tables
from airflow_cdc_provider.connectors.sources.postgres.publication import quoted
from airflow_cdc_provider.connectors.unrepresentable import INFINITE, NOT_A_NUMBER, OTHER_YEAR, unrepresentable_row
from airflow_cdc_provider.core.errors import BadRecordFound, Problem, SourceUnavailable
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.schema import TableSchema

if TYPE_CHECKING:
    import pyarrow as pa
    from psycopg import Connection

BEYOND = f"{INFINITE}, {OTHER_YEAR}, or {NOT_A_NUMBER}"

REWRITTEN = "the table was truncated or rewritten during its copy"
# In a session under the snapshot the catalogue's rows are those of the snapshot; its functions tell what is there now.
# Neither TRUNCATE nor a rewriting ALTER respects older snapshots: rows would be missing from the copy unseen.
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


@dataclass(frozen=True)
class Viewed:
    """A table under an exported snapshot. ``name``: as SQL writes it."""

    table: str
    name: str
    oid: int
    snapshot: str


@dataclass(frozen=True)
class TableSplit:
    """``rows``: a SELECT; ``within``: the condition on its columns that makes the share."""

    viewed: Viewed
    rows: str
    within: str

    def text(self) -> str:
        return json.dumps(to_plain(self))


def split_of(text: str) -> TableSplit:
    return from_plain(TableSplit, json.loads(text))


def read_split(client: PostgresClient, text: str, schema: TableSchema) -> Iterator[pa.Table]:
    """The columns of ``schema``. Raises SourceUnavailable (CPY008) where the table is not what it was, BadRecordFound
    (CPY009) where a row holds what no target can."""
    share = split_of(text)
    columns = ", ".join(map(quoted, schema.names))
    rows = f"SELECT {columns} FROM ({share.rows}) AS rows WHERE {share.within}"
    with (
        under_snapshot(client, share.viewed) as connection,
        connection.cursor().copy(f"COPY ({rows}) TO STDOUT (FORMAT csv)".encode()) as lines,
    ):
        try:
            yield from csv_tables(lines, schema)
        except NoneOfItsColumn as error:
            raise BadRecordFound(unrepresentable_row(schema, error.columns, BEYOND)) from error


def checksums(client: PostgresClient, copy: Copy, query: str) -> Mapping[str, Any]:
    """The one row of a query under the snapshot of the copy."""
    from psycopg.rows import dict_row

    with (
        under_snapshot(client, split_of(copy.read.splits[0]).viewed) as connection,
        connection.cursor(row_factory=dict_row) as cursor,
    ):
        row = cursor.execute(query.encode()).fetchone()
    assert row is not None, "sums without groups are one row"
    return row


def with_rows(copy: Copy, rows: str) -> SplitRead:
    """The shares of the copy, with another SELECT over the same table."""
    return replace(copy.read, splits=tuple(replace(split_of(one), rows=rows).text() for one in copy.read.splits))


@contextmanager
def under_snapshot(client: PostgresClient, viewed: Viewed) -> Iterator[Connection[Any]]:
    """A session that sees the table as the copy does, and holds off TRUNCATE and ALTER for as long as it reads."""
    from psycopg.errors import RaiseException

    with client.session("copy") as connection:
        connection.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        connection.execute(f"SET TRANSACTION SNAPSHOT '{viewed.snapshot}'".encode())
        connection.execute(f"LOCK TABLE {viewed.name} IN ACCESS SHARE MODE".encode())
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
        found="TRUNCATE, or an ALTER that writes every row anew",
        do="nothing: the next attempt copies it anew",
        data="nothing of this attempt is visible",
    )
