"""The state store of one Airflow installation.

Every write is a compare-and-set: it states the expected row, and has no effect or is repeated if the row differs. The
audit log is append-only. Leases provide liveness (one run at a time works on a lane), not safety: safety is the fence
in the target. Lease times are those of PostgreSQL's clock, or of the host of the SQLite file.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from airflow_cdc_provider.core.decisions.commands import Command, CommandKind, CommandStatus, key_used
from airflow_cdc_provider.core.decisions.summaries import ReplicatorSummary, summarize
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.past_states import PastState, with_state
from airflow_cdc_provider.core.table.state_rows import AttemptRow, AuditEntry, Claim, TableRow
from airflow_cdc_provider.core.times import utc_now, utc_text
from airflow_cdc_provider.state import tables as t
from airflow_cdc_provider.state.alerts import Alerts
from airflow_cdc_provider.state.database import Database, insert, now, repeats_conflicts
from airflow_cdc_provider.state.positions import PositionEntries
from airflow_cdc_provider.state.replicators import ReplicatorEntries
from airflow_cdc_provider.state.rows import attempt_of, command_of, command_values, table_row
from airflow_cdc_provider.state.summaries import read_summaries, write_summary


@repeats_conflicts
class StateStore:
    """Does no I/O on construction. Every method raises StateUnavailable (STA010) if the database cannot be reached, and
    CheckFailed (STA002) if it belongs to a newer version."""

    def __init__(self, url: str) -> None:
        self.database = Database(url)
        self.replicators = ReplicatorEntries(self.database)
        self.positions = PositionEntries(self.database)
        self.alerts = Alerts(self.database)

    def owner(self) -> str:
        """The id of this store, created once. Target tables record it, so that two stores never share a table."""
        [row] = self.database.rows(sa.select(t.schema.c.owner))
        return str(row.owner)

    def now(self) -> str:
        """The time by the clock that all processes of the installation share."""
        with self.database.transaction() as connection:
            return utc_text(datetime.fromtimestamp(now(connection), UTC))

    # Leases

    def acquire(self, replicator: str, lane: str, holder: str, ttl_s: float) -> bool:
        """Acquire or renew the lease of a lane. False while another holder has it."""
        with self.database.transaction() as connection:
            time = now(connection)
            free = sa.or_(t.leases.c.holder == holder, t.leases.c.expires <= time)
            lease = {"holder": holder, "expires": time + ttl_s}
            acquired = connection.execute(_lease(t.leases.update(), replicator, lane).where(free).values(**lease))
            return acquired.rowcount == 1 or insert(connection, t.leases, replicator=replicator, lane=lane, **lease)

    def renew(self, replicator: str, lane: str, holder: str, ttl_s: float) -> bool:
        """Extend the lease. False if it expired or another holder has it."""
        with self.database.transaction() as connection:
            time = now(connection)
            renewed = connection.execute(
                _lease(t.leases.update(), replicator, lane)
                .where(t.leases.c.holder == holder, t.leases.c.expires > time)
                .values(expires=time + ttl_s)
            )
            return renewed.rowcount == 1

    def seize(self, replicator: str, lane: str, holder: str, ttl_s: float) -> None:
        """Take the lease of a lane from its holder, whose steps stop when they renew it."""
        with self.database.transaction() as connection:
            lease = {"holder": holder, "expires": now(connection) + ttl_s}
            if not connection.execute(_lease(t.leases.update(), replicator, lane).values(**lease)).rowcount:
                insert(connection, t.leases, replicator=replicator, lane=lane, **lease)

    def release(self, replicator: str, lane: str, holder: str) -> bool:
        """Release the lease. False if this holder did not have it."""
        return self.database.changes_row(_lease(t.leases.delete(), replicator, lane).where(t.leases.c.holder == holder))

    def holder(self, replicator: str, lane: str) -> str | None:
        """The current holder of a lane; None if there is none or the lease expired."""
        with self.database.transaction() as connection:
            query = _lease(sa.select(t.leases.c.holder), replicator, lane).where(t.leases.c.expires > now(connection))
            holder: str | None = connection.execute(query).scalar_one_or_none()
            return holder

    # Commands

    def request(
        self,
        replicator: str,
        kind: CommandKind,
        tables: Sequence[str],
        arguments: dict[str, Any],
        key: str,
        by: str,
    ) -> Command:
        """Store a command. For a key that exists already, the existing command is returned; raises KeyUsed (CMD002)
        if it differs."""
        command = Command(
            id=str(uuid.uuid4()),
            replicator=replicator,
            kind=kind,
            tables=tuple(sorted(tables)),
            arguments=arguments,
            key=key,
            requested_by=by,
            requested_at=utc_now(),
        )
        with self.database.transaction() as connection:
            if insert(connection, t.commands, **command_values(command)):
                return command
            query = sa.select(t.commands).where(t.commands.c.replicator == replicator, t.commands.c.key == key)
            existing = command_of(connection.execute(query).one())
        if (existing.kind, existing.tables, existing.arguments) != (command.kind, command.tables, command.arguments):
            raise key_used(existing)
        return existing

    def pending(self, replicator: str) -> tuple[Command, ...]:
        """Commands that are not finished, oldest first, including those that a run has started."""
        open_states = (CommandStatus.PENDING.value, CommandStatus.STARTED.value)
        query = (
            sa.select(t.commands)
            .where(t.commands.c.replicator == replicator, t.commands.c.status.in_(open_states))
            .order_by(t.commands.c.number)
        )
        return tuple(command_of(row) for row in self.database.rows(query))

    def start(self, command_id: str, run_id: str) -> bool:
        """Mark a command as started by a run. A later run may take over what an earlier one did not finish."""
        return self._change_command(command_id, status=CommandStatus.STARTED.value, run_id=run_id)

    def finish(self, command_id: str, outcome: str, result: dict[str, Any], failed: bool = False) -> bool:
        """Mark a command as done or ``failed``. False if it was finished before; the first outcome is kept."""
        return self._change_command(
            command_id,
            status=(CommandStatus.FAILED if failed else CommandStatus.DONE).value,
            outcome=outcome,
            result=json.dumps(result),
            finished_at=utc_now(),
        )

    def note_progress(self, command_id: str, result: dict[str, Any]) -> bool:
        """What has become of a command so far. False if it was finished before."""
        return self._change_command(command_id, result=json.dumps(result))

    def command(self, command_id: str) -> Command | None:
        rows = self.database.rows(sa.select(t.commands).where(t.commands.c.id == command_id))
        return command_of(rows[0]) if rows else None

    def command_of_key(self, replicator: str, key: str) -> Command | None:
        query = sa.select(t.commands).where(t.commands.c.replicator == replicator, t.commands.c.key == key)
        rows = self.database.rows(query)
        return command_of(rows[0]) if rows else None

    def recent_commands(self, replicator: str, limit: int, before: str = "") -> tuple[Command, ...]:
        """Newest first, finished or not. ``before``: only those that came before the command with this id."""
        query = (
            sa.select(t.commands)
            .where(t.commands.c.replicator == replicator)
            .order_by(t.commands.c.number.desc())
            .limit(limit)
        )
        if before:
            query = query.where(
                t.commands.c.number < sa.select(t.commands.c.number).where(t.commands.c.id == before).scalar_subquery()
            )
        return tuple(command_of(row) for row in self.database.rows(query))

    def _change_command(self, command_id: str, **values: Any) -> bool:
        return self.database.changes_row(
            t.commands.update().where(t.commands.c.id == command_id, t.commands.c.finished_at == "").values(**values)
        )

    # Attempts

    def open_attempt(self, attempt: AttemptRow) -> None:
        """Record a submission before it happens. Idempotent."""
        values = to_plain(attempt) | {"tables": json.dumps(attempt.tables)}
        with self.database.transaction() as connection:
            insert(connection, t.attempts, **values)

    def close_attempt(self, attempt: str, outcome: str) -> bool:
        """Record the end of the driver. False if it was recorded before, or the attempt is unknown."""
        return self.database.changes_row(
            t.attempts.update()
            .where(t.attempts.c.id == attempt, t.attempts.c.closed_at == "")
            .values(closed_at=utc_now(), outcome=outcome)
        )

    def open_attempts(self, replicator: str) -> tuple[AttemptRow, ...]:
        """Attempts whose driver may still be running, oldest first."""
        query = (
            sa.select(t.attempts)
            .where(t.attempts.c.replicator == replicator, t.attempts.c.closed_at == "")
            .order_by(t.attempts.c.opened_at, t.attempts.c.id)
        )
        return tuple(map(attempt_of, self.database.rows(query)))

    def ended_attempts(self, replicator: str, kinds: Collection[str], limit: int) -> tuple[AttemptRow, ...]:
        """The last attempts of these kinds whose end was observed, newest first."""
        query = (
            sa.select(t.attempts)
            .where(t.attempts.c.replicator == replicator, t.attempts.c.kind.in_(kinds), t.attempts.c.closed_at != "")
            .order_by(t.attempts.c.opened_at.desc(), t.attempts.c.id)
            .limit(limit)
        )
        return tuple(map(attempt_of, self.database.rows(query)))

    def retried(self, replicator: str, run_id: str) -> tuple[AttemptRow, ...]:
        """The attempts of the run that submitted a job again."""
        query = sa.select(t.attempts).where(
            t.attempts.c.replicator == replicator, t.attempts.c.run_id == run_id, t.attempts.c.try_number > 1
        )
        return tuple(map(attempt_of, self.database.rows(query)))

    # Claims of the copy lane

    def claim(self, replicator: str, table: str, run_id: str, sealed_window: int) -> bool:
        """Claim a table for a copy. True also if the same run has claimed it before; the first window is kept. False if
        another run has claimed it."""
        claim = Claim(replicator, table, run_id, sealed_window, utc_now())
        with self.database.transaction() as connection:
            if insert(connection, t.claims, **to_plain(claim)):
                return True
            query = _claim(sa.select(t.claims.c.run_id), replicator, table)
            return bool(connection.execute(query).scalar_one() == run_id)

    def release_claim(self, replicator: str, table: str, run_id: str) -> bool:
        return self.database.changes_row(
            _claim(t.claims.delete(), replicator, table).where(t.claims.c.run_id == run_id)
        )

    def claims(self, replicator: str) -> tuple[Claim, ...]:
        query = sa.select(t.claims).where(t.claims.c.replicator == replicator).order_by(t.claims.c.table)
        return tuple(Claim(**row._mapping) for row in self.database.rows(query))

    # Table rows and audit log

    def change_tables(
        self, replicator: str, change: Callable[[Mapping[str, TableRow]], Iterable[TableRow]]
    ) -> tuple[TableRow, ...]:
        """Write the rows that ``change`` returns for the current rows, with the history of their states; other rows are
        unchanged. If another writer has changed one of them meanwhile, ``change`` is called again with the new rows."""
        while True:
            before = self.tables(replicator)
            rows = tuple(_with_history(row, before.get(row.table)) for row in change(before))
            if self._set_tables(replicator, rows, before):
                return rows

    def _set_tables(self, replicator: str, rows: Sequence[TableRow], before: Mapping[str, TableRow]) -> bool:
        with self.database.transaction() as connection:
            current = _table_rows(connection, replicator, lock=True)
            if any(current.get(row.table) != before.get(row.table) for row in rows):
                return False
            for row in rows:
                body = json.dumps(to_plain(row))
                if row.table in current:
                    key = (t.table_rows.c.replicator == replicator, t.table_rows.c.table == row.table)
                    connection.execute(t.table_rows.update().where(*key).values(body=body))
                elif not insert(connection, t.table_rows, replicator=replicator, table=row.table, body=body):
                    return False
            write_summary(connection, replicator, current | {row.table: row for row in rows})
        return True

    def tables(self, replicator: str) -> dict[str, TableRow]:
        with self.database.transaction() as connection:
            return _table_rows(connection, replicator)

    def table(self, replicator: str, table: str) -> TableRow | None:
        rows = self.database.rows(_of_replicator(replicator).where(t.table_rows.c.table == table))
        return table_row(rows[0]) if rows else None

    def tables_page(self, replicator: str, after: str, limit: int) -> tuple[TableRow, ...]:
        """At most ``limit`` rows of tables whose names come after ``after``, by name."""
        query = _of_replicator(replicator).where(t.table_rows.c.table > after).limit(limit)
        return tuple(map(table_row, self.database.rows(query)))

    def summaries(self, replicators: Collection[str]) -> dict[str, ReplicatorSummary]:
        """For each of them. One that no run of this version has opened is summarized from its rows."""
        with self.database.transaction() as connection:
            found = read_summaries(connection, replicators)
            return {name: found.get(name) or summarize(_table_rows(connection, name).values()) for name in replicators}

    def write_audit(self, replicator: str, actor: str, action: str, detail: dict[str, Any], once: bool = False) -> None:
        """Append an entry to the audit log. ``detail`` must not contain secrets or row values. ``once``: unless the log
        has the same entry; concurrent calls wait for each other."""
        entry = {"replicator": replicator, "actor": actor, "action": action, "detail": json.dumps(detail)}
        with self.database.transaction() as connection:
            if once:
                connection.execute(sa.select(t.schema).with_for_update())
                if connection.execute(sa.select(t.audit).filter_by(**entry).limit(1)).first():
                    return
            connection.execute(t.audit.insert().values(at=utc_now(), **entry))

    def audit(self, replicator: str, limit: int, before: int | None = None) -> tuple[AuditEntry, ...]:
        """The latest entries, newest first. ``before``: only those with a lower number."""
        query = (
            sa.select(t.audit).where(t.audit.c.replicator == replicator).order_by(t.audit.c.number.desc()).limit(limit)
        )
        query = query if before is None else query.where(t.audit.c.number < before)
        return tuple(
            AuditEntry(row.number, row.at, row.replicator, row.actor, row.action, json.loads(row.detail))
            for row in self.database.rows(query)
        )


def _table_rows(connection: Connection, replicator: str, lock: bool = False) -> dict[str, TableRow]:
    query = _of_replicator(replicator)
    rows = connection.execute(query.with_for_update() if lock else query)
    return {row.table: table_row(row) for row in rows}


def _with_history(row: TableRow, before: TableRow | None) -> TableRow:
    history = before.history if before else ()
    return replace(row, history=with_state(history, PastState(row.state, row.since, row.reason)))


def _of_replicator(replicator: str) -> sa.Select[Any]:
    return sa.select(t.table_rows).where(t.table_rows.c.replicator == replicator).order_by(t.table_rows.c.table)


def _lease(statement: Any, replicator: str, lane: str) -> Any:
    return statement.where(t.leases.c.replicator == replicator, t.leases.c.lane == lane)


def _claim(statement: Any, replicator: str, table: str) -> Any:
    return statement.where(t.claims.c.replicator == replicator, t.claims.c.table == table)
