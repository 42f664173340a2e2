"""The positions of streams in the state store: one row for each replicator. An index, as the rows of tables are."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa

from airflow_cdc_provider.core.decisions.stream_positions import StreamPositions
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.state import tables as t
from airflow_cdc_provider.state.database import Database, insert, repeats_conflicts


@repeats_conflicts
class PositionEntries:
    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, replicator: str) -> StreamPositions:
        """Empty ones if no run has written any."""
        rows = self._database.rows(sa.select(t.positions).where(t.positions.c.replicator == replicator))
        return from_plain(StreamPositions, json.loads(rows[0].body)) if rows else StreamPositions()

    def update(self, replicator: str, **seen: Any) -> None:
        """Set these fields, in one transaction."""
        key = t.positions.c.replicator == replicator
        with self._database.transaction() as connection:
            insert(connection, t.positions, replicator=replicator, body=json.dumps(to_plain(StreamPositions())))
            query = sa.select(t.positions.c.body).where(key).with_for_update()
            body = json.loads(connection.execute(query).scalar_one()) | to_plain(seen)
            connection.execute(t.positions.update().where(key).values(body=json.dumps(body)))
