"""The entries of replicators in the state store. They outlive the YAML: what a replicator uses at its source, in
staging and in its target can be found and removed without it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from airflow_cdc_provider.core.decisions.replicator_changes import ReplicatorEntry
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.state import tables as t
from airflow_cdc_provider.state.database import Database, insert, repeats_conflicts

FORMAT = 1

Change = Callable[[ReplicatorEntry | None], ReplicatorEntry | None]


@repeats_conflicts
class ReplicatorEntries:
    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> dict[str, ReplicatorEntry]:
        rows = self._database.rows(sa.select(t.replicators).order_by(t.replicators.c.replicator))
        return {row.replicator: _entry(row) for row in rows}

    def names(self) -> list[str]:
        """Of all entries, sorted, without reading them."""
        query = sa.select(t.replicators.c.replicator)
        return sorted(str(row.replicator) for row in self._database.rows(query))

    def of(self, replicators: Collection[str]) -> list[ReplicatorEntry]:
        """The entries of these replicators, by name. For a few hundred: SQLite limits parameters."""
        query = sa.select(t.replicators).where(t.replicators.c.replicator.in_(replicators))
        found = {str(row.replicator): _entry(row) for row in self._database.rows(query)}
        return [found[name] for name in sorted(found)]  # as names(), whatever the collation of the database

    def get(self, replicator: str) -> ReplicatorEntry | None:
        with self._database.transaction() as connection:
            return _read(connection, replicator)

    def change(self, replicator: str, change: Change) -> ReplicatorEntry | None:
        """Write what ``change`` returns for the current entry, in one transaction; for None the entry is removed. What
        ``change`` raises leaves the entry as it is."""
        with self._database.transaction() as connection:
            return _change(connection, replicator, change)

    def change_two(self, first: str, second: str, change_first: Change, change_second: Change) -> None:
        """``change`` for two entries in one transaction, in this order."""
        with self._database.transaction() as connection:
            _change(connection, first, change_first)
            _change(connection, second, change_second)

    def remove_rows(self, replicator: str, change: Change) -> None:
        """Remove every row of a replicator but the audit log, and ``change`` its entry, in one transaction."""
        with self._database.transaction() as connection:
            for table in t.OF_REPLICATOR:
                connection.execute(table.delete().where(table.c.replicator == replicator))
            _change(connection, replicator, change)

    def rename_rows(self, former: str, name: str) -> None:
        """Give every row of ``former`` but leases and the audit log to ``name``, in one transaction. Idempotent. They
        replace rows of ``name`` with the same key: commands that were given under that name leave some."""
        with self._database.transaction() as connection:
            for table in t.KEPT_BY_RENAME:
                for columns in _keys(table):
                    connection.execute(_replaced(table, columns, former, name))
                connection.execute(table.update().where(table.c.replicator == former).values(replicator=name))


def _keys(table: sa.Table) -> list[list[str]]:
    """The columns beside the replicator's name of each key with it."""
    keys = [one for one in table.constraints if isinstance(one, sa.PrimaryKeyConstraint | sa.UniqueConstraint)]
    names = [[column.name for column in key.columns] for key in keys]
    return [[name for name in key if name != "replicator"] for key in names if "replicator" in key]


def _replaced(table: sa.Table, key: Iterable[str], former: str, name: str) -> sa.Delete:
    renamed = table.alias()
    equal = (renamed.c[column] == table.c[column] for column in key)
    found = sa.exists().where(renamed.c.replicator == former, *equal)
    return table.delete().where(table.c.replicator == name, found)


def _change(connection: Connection, replicator: str, change: Change) -> ReplicatorEntry | None:
    before = _read(connection, replicator, lock=True)
    after = change(before)
    key = t.replicators.c.replicator == replicator
    if after is None:
        connection.execute(t.replicators.delete().where(key))
    elif after != before:
        body = json.dumps({"format": FORMAT, **to_plain(after)})
        found = connection.execute(t.replicators.update().where(key).values(body=body)).rowcount
        if not found and not insert(connection, t.replicators, replicator=replicator, body=body):
            return _change(connection, replicator, change)  # another process was first
    return after


def _read(connection: Connection, replicator: str, lock: bool = False) -> ReplicatorEntry | None:
    query = sa.select(t.replicators).where(t.replicators.c.replicator == replicator)
    rows: Iterable[sa.Row[Any]] = connection.execute(query.with_for_update() if lock else query)
    return next((_entry(row) for row in rows), None)


def _entry(row: sa.Row[Any]) -> ReplicatorEntry:
    return from_plain(ReplicatorEntry, json.loads(row.body))
