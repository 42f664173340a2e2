"""A full copy of one table under an exported snapshot, as Spark's JDBC source reads it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from airflow_cdc_provider.connectors.postgres.catalog import read_catalogue
from airflow_cdc_provider.connectors.postgres.client import DEFAULT_PORT, Client, settings_sql
from airflow_cdc_provider.connectors.postgres.positions import floor_key, position_of
from airflow_cdc_provider.connectors.postgres.publication import ensure_members, no_table, quoted, table_sql
from airflow_cdc_provider.connectors.postgres.schemas import Described
from airflow_cdc_provider.connectors.postgres.select import CTID, condition_sql, select_list, spark_casts
from airflow_cdc_provider.connectors.postgres.slots import ExportedSnapshot, exported_snapshot
from airflow_cdc_provider.connectors.source import Copy, JdbcRead
from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.core.selection import selected_schema
from airflow_cdc_provider.core.steps import TableTask

if TYPE_CHECKING:
    from psycopg import Connection

DRIVER = "org.postgresql.Driver"
FETCH_ROWS = 1000
# Options of libpq that the JDBC driver knows under the same name. It wants keys in another format than libpq does.
JDBC_EXTRAS: Mapping[str, str] = {"sslmode": "sslmode", "sslrootcert": "sslrootcert", "gssencmode": "gssEncMode"}

# Parts of a partitioned table are read together, block range by block range; their largest sets the ranges.
SIZE = """
SELECT coalesce(max(pg_relation_size(leaf.oid)) / current_setting('block_size')::bigint, 0),
       coalesce(sum(greatest(leaf.reltuples, 0)), 0)::bigint
FROM pg_class leaf
WHERE leaf.oid = %(oid)s OR leaf.oid IN (SELECT relid FROM pg_partition_tree(%(oid)s::oid::regclass) WHERE isleaf)
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
"""Correlation of a column's order with the heap's."""


REWRITTEN = "the table was truncated or rewritten during its copy"
# In a session under the snapshot the catalogue's rows are those of the snapshot; its functions tell what is there now.
# Neither TRUNCATE nor a rewriting ALTER respects older snapshots: rows would be missing from the copy unseen.
STILL_WHOLE = """
DO $check$ BEGIN
  IF EXISTS (
    SELECT FROM pg_class leaf
    WHERE (leaf.oid = {oid} OR leaf.oid IN (SELECT relid FROM pg_partition_tree({oid}::oid::regclass) WHERE isleaf))
      AND leaf.relkind = 'r' AND leaf.relfilenode IS DISTINCT FROM pg_relation_filenode(leaf.oid)
  ) THEN RAISE EXCEPTION '{rewritten}';
  END IF;
END $check$
"""


@contextmanager
def open_copy(client: Client, publication: str, task: TableTask, epoch: int, partitions: int) -> Iterator[Copy]:
    """Each session that reads a part locks the table against TRUNCATE and ALTER while it reads, and fails where one
    came before it. Nothing is locked in between, so that no such statement waits longer than a part takes.

    Raises SourceUnavailable where the slot cannot be made in time.
    """
    with client.session("publication") as connection:
        catalogue = read_catalogue(connection, [task.table])
        if task.table not in catalogue.tables:
            raise CheckFailed(no_table(task.table, client.place))
        ensure_members(connection, publication, [catalogue.tables[task.table]], client.place)
    with exported_snapshot(client, f"cdc_copy_{secrets.token_hex(6)}") as snapshot:
        with client.session("copy") as connection:
            connection.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ")
            connection.execute(f"SET TRANSACTION SNAPSHOT '{snapshot.name}'".encode())
            described = read_catalogue(connection, [task.table]).tables[task.table]
            copy = _copy(client, connection, described, snapshot, task, epoch, partitions)
        yield copy


def block_ranges(blocks: int, parts: int) -> tuple[str, ...]:
    """Conditions that split a heap of ``blocks`` into ``parts``. The last is open: the heap may have grown."""
    parts = max(1, min(parts, blocks))
    edges = [blocks * part // parts for part in range(1, parts)]
    if not edges:
        return ("TRUE",)
    places = [f"'({edge},0)'::tid" for edge in edges]
    name = quoted(CTID)
    inner = [f"{name} >= {low} AND {name} < {high}" for low, high in pairwise(places)]
    return (f"{name} < {places[0]}", *inner, f"{name} >= {places[-1]}")


def _copy(
    client: Client,
    connection: Connection[Any],
    described: Described,
    snapshot: ExportedSnapshot,
    task: TableTask,
    epoch: int,
    partitions: int,
) -> Copy:
    schema = replace(selected_schema(task.rule, described.schema), key=task.schema.key)
    row = connection.execute(SIZE, {"oid": described.oid}).fetchone()
    assert row is not None
    blocks, rows = row
    limits = {"many": MANY_VALUES, "ordered": ORDERED}
    statistics = connection.execute(STATISTICS, {"oid": described.oid, **limits}).fetchall()
    where = " AND ".join(condition_sql(condition, schema) for condition in task.rule.where)
    query = f"SELECT {select_list(schema)} FROM {_from(connection, described)}{f' WHERE {where}' if where else ''}"
    read = JdbcRead(
        url=jdbc_url(client),
        driver=DRIVER,
        user=client.info.login,
        password=client.info.password,
        query=f"({query}) AS copied",
        predicates=block_ranges(blocks, partitions),
        session_init=session_init(snapshot.name, described),
        fetch_rows=FETCH_ROWS,
        casts=spark_casts(schema),
        hidden=(CTID,),
        refusals={REWRITTEN: _rewritten(task.table)},
    )
    return Copy(
        floor_key(epoch, snapshot.consistent_point),
        position_of(snapshot.consistent_point),
        schema,
        read,
        rows,
        various=tuple(str(name) for name, various, _ in statistics if various and name in schema.names),
        in_order=tuple(str(name) for name, _, in_order in statistics if in_order and name in schema.names),
    )


def _rewritten(table: str) -> Problem:
    return Problem(
        "CPY008",
        REWRITTEN,
        where=table,
        found="TRUNCATE, or an ALTER that writes every row anew",
        do="nothing: the next attempt copies it anew",
        data="nothing of this attempt is visible",
    )


def _from(connection: Connection[Any], described: Described) -> str:
    """A table with old-style children shows their rows too; they belong to the children."""
    row = connection.execute("SELECT relkind FROM pg_class WHERE oid = %s", (described.oid,)).fetchone()
    return table_sql(described) if row and row[0] in ("p", b"p") else f"ONLY {table_sql(described)}"


def session_init(snapshot: str, table: Described) -> str:
    """Runs first in the transaction that the driver opens before it reads."""
    return (
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; "
        f"SET TRANSACTION SNAPSHOT '{snapshot}'; {settings_sql()}; "
        f"LOCK TABLE {table_sql(table)} IN ACCESS SHARE MODE; {STILL_WHOLE.format(oid=table.oid, rewritten=REWRITTEN)}"
    )


def jdbc_url(client: Client) -> str:
    info = client.info
    options = {"ApplicationName": client.application_name("copy"), "tcpKeepAlive": "true", "prepareThreshold": "-1"}
    options |= {ours: str(info.extra[name]) for name, ours in JDBC_EXTRAS.items() if name in info.extra}
    server = f"{info.host}:{info.port or DEFAULT_PORT}"
    return f"jdbc:postgresql://{server}/{quote(info.schema, safe='')}?{urlencode(options)}"
