"""The open alerts of replicators, and the notices that are to be sent.

Both change in one transaction, so an alert is notified once however often its problem is seen. A notice stays until its
receivers have it: a process that dies while it sends one sends it again. The lease of a lane lets one process at a time
do this for a replicator.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa

from airflow_cdc_provider.core.decisions.alerts import WHOLE_REPLICATOR, Alert, Notice, Waiting, notices, still_known
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.state import tables as t
from airflow_cdc_provider.state.database import Database, insert, repeats_conflicts


@repeats_conflicts
class Alerts:
    def __init__(self, database: Database) -> None:
        self._database = database

    def open(self, replicator: str) -> tuple[Alert, ...]:
        """By table."""
        query = sa.select(t.alerts).where(t.alerts.c.replicator == replicator).order_by(t.alerts.c.table, t.alerts.c.id)
        return tuple(from_plain(Alert, json.loads(row.body)) for row in self._database.rows(query))

    def replicators(self) -> frozenset[str]:
        """Those with an open alert, or a notice that is to be sent."""
        found = (row.replicator for table in (t.alerts, t.notices) for row in self._database.rows(_names(table)))
        return frozenset(found)

    def change(self, replicator: str, current: Sequence[Alert], whole_replicator: bool) -> None:
        """``current``: all alerts of the replicator now. ``whole_replicator``: whether those that are not of a table
        are among them; else these stay open."""
        at = utc_now()
        with self._database.transaction() as connection:
            query = sa.select(t.alerts).where(t.alerts.c.replicator == replicator).with_for_update()
            known = [from_plain(Alert, json.loads(row.body)) for row in connection.execute(query)]
            known = [alert for alert in known if whole_replicator or alert.table != WHOLE_REPLICATOR]
            before = {alert.key for alert in known}
            for table, id_ in before - {alert.key for alert in still_known(known, current)}:
                key = (t.alerts.c.replicator == replicator, t.alerts.c.table == table, t.alerts.c.id == id_)
                connection.execute(t.alerts.delete().where(*key))
            for alert in current:
                if alert.key not in before:
                    values = {"replicator": replicator, "table": alert.table, "id": alert.id}
                    insert(connection, t.alerts, **values, body=json.dumps(to_plain(alert)))
            for notice in notices(known, current, at):
                values = {"replicator": replicator, "created_at": at, "delivered": "[]"}
                connection.execute(t.notices.insert().values(**values, body=json.dumps(to_plain(notice))))

    def waiting(self, replicator: str) -> tuple[Waiting, ...]:
        """Oldest first."""
        query = sa.select(t.notices).where(t.notices.c.replicator == replicator).order_by(t.notices.c.number)
        return tuple(
            Waiting(
                row.number, from_plain(Notice, json.loads(row.body)), row.created_at, tuple(json.loads(row.delivered))
            )
            for row in self._database.rows(query)
        )

    def delivered(self, waiting: Sequence[Waiting], receiver: str) -> None:
        """A receiver has these notices."""
        with self._database.transaction() as connection:
            for one in waiting:
                query = sa.select(t.notices.c.delivered).where(t.notices.c.number == one.number).with_for_update()
                before = connection.execute(query).scalar_one_or_none() or "[]"
                body = json.dumps([*json.loads(before), receiver])
                connection.execute(t.notices.update().where(t.notices.c.number == one.number).values(delivered=body))

    def remove(self, numbers: Collection[int]) -> None:
        """Notices that each receiver has, or that have become too old."""
        with self._database.transaction() as connection:
            for number in numbers:
                connection.execute(t.notices.delete().where(t.notices.c.number == number))


def _names(table: sa.Table) -> sa.Select[Any]:
    return sa.select(table.c.replicator).distinct()
