"""The summaries of replicators: a list of them reads one row each, not those of their tables."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from airflow_cdc_provider.core.decisions.summaries import ReplicatorSummary, summarize
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.state import tables as t
from airflow_cdc_provider.state.database import insert

NAMES_AT_ONCE = 500
"""SQLite limits the parameters of a query."""


def write_summary(connection: Connection, replicator: str, rows: Mapping[str, TableRow]) -> None:
    """In the transaction that changes ``rows``: all rows of the replicator."""
    body = json.dumps(to_plain(summarize(rows.values())))
    found = connection.execute(t.summaries.update().where(t.summaries.c.replicator == replicator).values(body=body))
    if not found.rowcount and not insert(connection, t.summaries, replicator=replicator, body=body):
        write_summary(connection, replicator, rows)  # another process was first


def read_summaries(connection: Connection, replicators: Collection[str]) -> dict[str, ReplicatorSummary]:
    """Those that have one: each replicator that a run of this version has opened."""
    names, found = sorted(replicators), dict[str, ReplicatorSummary]()
    for start in range(0, len(names), NAMES_AT_ONCE):
        some = names[start : start + NAMES_AT_ONCE]
        for row in connection.execute(sa.select(t.summaries).where(t.summaries.c.replicator.in_(some))):
            found[row.replicator] = from_plain(ReplicatorSummary, json.loads(row.body))
    return found
