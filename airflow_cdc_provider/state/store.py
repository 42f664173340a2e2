"""The state store of one Airflow installation.

Every write is a compare-and-set: it states the expected row, and has no effect or is repeated if the row differs. The
audit log is append-only. Leases provide liveness (one run at a time works on a lane), not safety: safety is the fence
in the target. Lease times are those of PostgreSQL's clock, or of the host of the SQLite file.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError

from airflow_cdc_provider.core.decisions.commands import Command, CommandKind, CommandStatus
from airflow_cdc_provider.core.errors import CommandRefused, Problem, StateUnavailable
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.state_rows import AttemptRow, AuditEntry, Claim, TableRow
from airflow_cdc_provider.state import tables as t
from airflow_cdc_provider.state.engine import open_engine


class StateStore:
    """Opens on first use, and creates or upgrades its tables. Every method raises StateUnavailable (STA010) if the
    database cannot be reached, and CheckFailed (STA002) if it belongs to a newer version."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._engine: sa.Engine | None = None

    def owner(self) -> str:
        """The id of this store, created once. Target tables record it, so that two stores never share a table."""
        with self._transaction() as connection:
            return str(connection.execute(sa.select(t.schema.c.owner)).scalar_one())

    # Leases

    def acquire(self, replicator: str, lane: str, holder: str, ttl_s: float) -> bool:
        """Acquire or renew the lease of a lane. False while another holder has it."""
        with self._transaction() as connection:
            now = _now(connection)
            free = sa.or_(t.leases.c.holder == holder, t.leases.c.expires <= now)
            acquired = connection.execute(
                _lease(t.leases.update(), replicator, lane).where(free).values(holder=holder, expires=now + ttl_s)
            )
            return acquired.rowcount == 1 or _insert(
                connection, t.leases, replicator=replicator, lane=lane, holder=holder, expires=now + ttl_s
            )

    def renew(self, replicator: str, lane: str, holder: str, ttl_s: float) -> bool:
        """Extend the lease. False if it expired or another holder has it."""
        with self._transaction() as connection:
            now = _now(connection)
            renewed = connection.execute(
                _lease(t.leases.update(), replicator, lane)
                .where(t.leases.c.holder == holder, t.leases.c.expires > now)
                .values(expires=now + ttl_s)
            )
            return renewed.rowcount == 1

    def release(self, replicator: str, lane: str, holder: str) -> bool:
        """Release the lease. False if this holder did not have it."""
        with self._transaction() as connection:
            deleted = connection.execute(_lease(t.leases.delete(), replicator, lane).where(t.leases.c.holder == holder))
            return deleted.rowcount == 1

    def holder(self, replicator: str, lane: str) -> str | None:
        """The current holder of a lane; None if there is none or the lease expired."""
        with self._transaction() as connection:
            query = sa.select(t.leases.c.holder).where(
                t.leases.c.replicator == replicator, t.leases.c.lane == lane, t.leases.c.expires > _now(connection)
            )
            return connection.execute(query).scalar_one_or_none()

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
        """Store a command. For a key that exists already, the existing command is returned; raises CommandRefused
        (CMD002) if it differs."""
        command = Command(
            id=str(uuid.uuid4()),
            replicator=replicator,
            kind=kind,
            tables=tuple(sorted(tables)),
            arguments=arguments,
            key=key,
            requested_by=by,
            requested_at=_utc(),
        )
        with self._transaction() as connection:
            if _insert(connection, t.commands, **_command_values(command)):
                return command
            query = sa.select(t.commands).where(t.commands.c.replicator == replicator, t.commands.c.key == key)
            existing = _command(connection.execute(query).one())
        if (existing.kind, existing.tables, existing.arguments) != (command.kind, command.tables, command.arguments):
            raise CommandRefused(
                Problem(
                    "CMD002",
                    "this key was used for another command",
                    where=f"{replicator}, key {key}",
                    found=f"{existing.kind} of {', '.join(existing.tables) or 'all tables'}",
                    do="use a new key, or none",
                )
            )
        return existing

    def pending(self, replicator: str) -> tuple[Command, ...]:
        """Commands that are not finished, oldest first, including those that a run has started."""
        open_states = (CommandStatus.PENDING.value, CommandStatus.STARTED.value)
        query = (
            sa.select(t.commands)
            .where(t.commands.c.replicator == replicator, t.commands.c.status.in_(open_states))
            .order_by(t.commands.c.number)
        )
        with self._transaction() as connection:
            return tuple(_command(row) for row in connection.execute(query))

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
            finished_at=_utc(),
        )

    def command(self, command_id: str) -> Command | None:
        with self._transaction() as connection:
            row = connection.execute(sa.select(t.commands).where(t.commands.c.id == command_id)).one_or_none()
            return None if row is None else _command(row)

    def _change_command(self, command_id: str, **values: Any) -> bool:
        with self._transaction() as connection:
            changed = connection.execute(
                t.commands.update()
                .where(t.commands.c.id == command_id, t.commands.c.finished_at == "")
                .values(**values)
            )
            return changed.rowcount == 1

    # Attempts

    def open_attempt(
        self,
        attempt: str,
        replicator: str,
        kind: str,
        run_id: str,
        task_id: str,
        try_number: int,
        folder: str,
        tables: Sequence[str],
    ) -> None:
        """Record a submission before it happens. Idempotent."""
        with self._transaction() as connection:
            _insert(
                connection,
                t.attempts,
                id=attempt,
                replicator=replicator,
                kind=kind,
                run_id=run_id,
                task_id=task_id,
                try_number=try_number,
                folder=folder,
                tables=json.dumps(list(tables)),
                opened_at=_utc(),
                closed_at="",
                outcome="",
            )

    def close_attempt(self, attempt: str, outcome: str) -> bool:
        """Record the end of the driver. False if it was recorded before, or the attempt is unknown."""
        with self._transaction() as connection:
            closed = connection.execute(
                t.attempts.update()
                .where(t.attempts.c.id == attempt, t.attempts.c.closed_at == "")
                .values(closed_at=_utc(), outcome=outcome)
            )
            return closed.rowcount == 1

    def open_attempts(self, replicator: str) -> tuple[AttemptRow, ...]:
        """Attempts whose driver may still be running, oldest first."""
        query = (
            sa.select(t.attempts)
            .where(t.attempts.c.replicator == replicator, t.attempts.c.closed_at == "")
            .order_by(t.attempts.c.opened_at, t.attempts.c.id)
        )
        with self._transaction() as connection:
            return tuple(
                AttemptRow(**{**row._mapping, "tables": tuple(json.loads(row.tables))})
                for row in connection.execute(query)
            )

    # Claims of the copy lane

    def claim(self, replicator: str, table: str, run_id: str, sealed_window: int) -> bool:
        """Claim a table for a copy. True also if the same run has claimed it before; the first window is kept. False if
        another run has claimed it."""
        with self._transaction() as connection:
            if _insert(
                connection,
                t.claims,
                replicator=replicator,
                table=table,
                run_id=run_id,
                sealed_window=sealed_window,
                since=_utc(),
            ):
                return True
            query = _claim(sa.select(t.claims.c.run_id), replicator, table)
            return bool(connection.execute(query).scalar_one() == run_id)

    def release_claim(self, replicator: str, table: str, run_id: str) -> bool:
        with self._transaction() as connection:
            statement = _claim(t.claims.delete(), replicator, table).where(t.claims.c.run_id == run_id)
            return bool(connection.execute(statement).rowcount == 1)

    def claims(self, replicator: str) -> tuple[Claim, ...]:
        query = sa.select(t.claims).where(t.claims.c.replicator == replicator).order_by(t.claims.c.table)
        with self._transaction() as connection:
            return tuple(Claim(**row._mapping) for row in connection.execute(query))

    # Table rows and audit log

    def change_tables(
        self, replicator: str, change: Callable[[Mapping[str, TableRow]], Iterable[TableRow]]
    ) -> tuple[TableRow, ...]:
        """Write the rows that ``change`` returns for the current rows; other rows are unchanged. If another writer has
        changed one of them meanwhile, ``change`` is called again with the new rows."""
        while True:
            before = self.tables(replicator)
            rows = tuple(change(before))
            if self._set_tables(replicator, rows, before):
                return rows

    def _set_tables(self, replicator: str, rows: Sequence[TableRow], before: Mapping[str, TableRow]) -> bool:
        with self._transaction() as connection:
            current = _table_rows(connection, replicator, lock=True)
            if any(current.get(row.table) != before.get(row.table) for row in rows):
                return False
            for row in rows:
                body = json.dumps(to_plain(row))
                if row.table in current:
                    key = (t.table_rows.c.replicator == replicator, t.table_rows.c.table == row.table)
                    connection.execute(t.table_rows.update().where(*key).values(body=body))
                elif not _insert(connection, t.table_rows, replicator=replicator, table=row.table, body=body):
                    return False
        return True

    def tables(self, replicator: str) -> dict[str, TableRow]:
        with self._transaction() as connection:
            return _table_rows(connection, replicator)

    def write_audit(self, replicator: str, actor: str, action: str, detail: dict[str, Any]) -> None:
        """Append an entry to the audit log. ``detail`` must not contain secrets or row values."""
        with self._transaction() as connection:
            connection.execute(
                t.audit.insert().values(
                    at=_utc(), replicator=replicator, actor=actor, action=action, detail=json.dumps(detail)
                )
            )

    def audit(self, replicator: str, limit: int) -> tuple[AuditEntry, ...]:
        """The latest entries, newest first."""
        query = (
            sa.select(t.audit).where(t.audit.c.replicator == replicator).order_by(t.audit.c.number.desc()).limit(limit)
        )
        with self._transaction() as connection:
            return tuple(
                AuditEntry(row.at, row.replicator, row.actor, row.action, json.loads(row.detail))
                for row in connection.execute(query)
            )

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        try:
            if self._engine is None:
                engine = open_engine(self.url)
                with engine.begin() as connection:
                    t.upgrade(connection)
                self._engine = engine
            with self._engine.begin() as connection:
                yield connection
        except (DBAPIError, OSError, UnicodeError) as error:  # UnicodeError: an invalid host name
            raise StateUnavailable(
                Problem(
                    "STA010",
                    "the state store cannot be used",
                    where=sa.engine.make_url(self.url).render_as_string(hide_password=True),
                    found=str(error.orig if isinstance(error, DBAPIError) else error).splitlines()[0][:200],
                    do="restore the database; a damaged SQLite file can be removed and rebuilt with "
                    "`airflow cdc state rebuild`",
                    data="source, change log and target tables are unchanged",
                )
            ) from error


def _table_rows(connection: Connection, replicator: str, lock: bool = False) -> dict[str, TableRow]:
    query = sa.select(t.table_rows).where(t.table_rows.c.replicator == replicator).order_by(t.table_rows.c.table)
    rows = connection.execute(query.with_for_update() if lock else query)
    return {row.table: from_plain(TableRow, json.loads(row.body)) for row in rows}


def _now(connection: Connection) -> float:
    """Seconds since 1970, by the clock that all clients of this database share."""
    if connection.dialect.name == "sqlite":
        return time.time()
    return float(connection.execute(sa.select(sa.extract("epoch", sa.func.clock_timestamp()))).scalar_one())


def _utc() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _lease(statement: Any, replicator: str, lane: str) -> Any:
    return statement.where(t.leases.c.replicator == replicator, t.leases.c.lane == lane)


def _claim(statement: Any, replicator: str, table: str) -> Any:
    return statement.where(t.claims.c.replicator == replicator, t.claims.c.table == table)


def _insert(connection: Connection, into: sa.Table, /, **values: Any) -> bool:
    """Insert a row. False if a row with this key exists."""
    try:
        with connection.begin_nested():
            connection.execute(into.insert().values(**values))
    except IntegrityError:
        return False
    return True


def _command_values(command: Command) -> dict[str, Any]:
    plain = to_plain(command)
    return {**plain, **{name: json.dumps(plain[name]) for name in ("tables", "arguments", "result")}}


def _command(row: sa.Row[Any]) -> Command:
    plain = {**row._mapping, **{name: json.loads(row._mapping[name]) for name in ("tables", "arguments", "result")}}
    return from_plain(Command, plain)
