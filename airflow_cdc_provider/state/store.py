"""The state store of one Airflow installation.

Every write compares and sets: it names what it expects to find, and does nothing, or is made anew, where it finds
something else; the audit only grows. Leases give liveness
(one run works on a lane at a time), never safety: that is the fence in the target. Lease times are those of
PostgreSQL's clock, of the one host where the store is a SQLite file.
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
    """Opens on first use and makes or upgrades its tables then. Every method raises StateUnavailable (STA010) where the
    database cannot be reached, CheckFailed (STA002) where it belongs to a newer version."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._engine: sa.Engine | None = None

    def owner(self) -> str:
        """The identity of this store, made once. Target tables carry it: two stores never share a table."""
        with self._transaction() as connection:
            return str(connection.execute(sa.select(t.schema.c.owner)).scalar_one())

    # Leases

    def acquire(self, replicator: str, lane: str, holder: str, ttl_s: float) -> bool:
        """Take the lane, or take it again. False while somebody else holds it."""
        with self._transaction() as connection:
            now = _now(connection)
            free = sa.or_(t.leases.c.holder == holder, t.leases.c.expires <= now)
            taken = connection.execute(
                _lease(t.leases.update(), replicator, lane).where(free).values(holder=holder, expires=now + ttl_s)
            )
            return taken.rowcount == 1 or _inserted(
                connection, t.leases, replicator=replicator, lane=lane, holder=holder, expires=now + ttl_s
            )

    def renew(self, replicator: str, lane: str, holder: str, ttl_s: float) -> bool:
        """Hold the lane longer. False where it is not ours any more, or the lease ran out."""
        with self._transaction() as connection:
            now = _now(connection)
            renewed = connection.execute(
                _lease(t.leases.update(), replicator, lane)
                .where(t.leases.c.holder == holder, t.leases.c.expires > now)
                .values(expires=now + ttl_s)
            )
            return renewed.rowcount == 1

    def release(self, replicator: str, lane: str, holder: str) -> bool:
        """Give the lane back. False where it was not ours."""
        with self._transaction() as connection:
            gone = connection.execute(_lease(t.leases.delete(), replicator, lane).where(t.leases.c.holder == holder))
            return gone.rowcount == 1

    def holder(self, replicator: str, lane: str) -> str | None:
        """Who holds the lane now; None where nobody does or the lease ran out."""
        with self._transaction() as connection:
            query = sa.select(t.leases.c.holder).where(
                t.leases.c.replicator == replicator, t.leases.c.lane == lane, t.leases.c.expires > _now(connection)
            )
            return connection.execute(query).scalar_one_or_none()

    # Requests

    def request(
        self,
        replicator: str,
        kind: CommandKind,
        tables: Sequence[str],
        arguments: dict[str, Any],
        key: str,
        by: str,
    ) -> Command:
        """Ask for something. The same key gives the request that is already there; raises CommandRefused (CMD002) where
        that one asks for something else."""
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
            if _inserted(connection, t.commands, **_command_values(command)):
                return command
            query = sa.select(t.commands).where(t.commands.c.replicator == replicator, t.commands.c.key == key)
            there = _command(connection.execute(query).one())
        if (there.kind, there.tables, there.arguments) != (command.kind, command.tables, command.arguments):
            raise CommandRefused(
                Problem(
                    "CMD002",
                    "this key was used for another request",
                    where=f"{replicator}, key {key}",
                    found=f"{there.kind} of {', '.join(there.tables) or 'all tables'}",
                    do="use a new key, or none",
                )
            )
        return there

    def pending(self, replicator: str) -> tuple[Command, ...]:
        """Requests that no run has finished, oldest first; a started one is there until it is finished."""
        open_states = (CommandStatus.PENDING.value, CommandStatus.STARTED.value)
        query = (
            sa.select(t.commands)
            .where(t.commands.c.replicator == replicator, t.commands.c.status.in_(open_states))
            .order_by(t.commands.c.number)
        )
        with self._transaction() as connection:
            return tuple(_command(row) for row in connection.execute(query))

    def start(self, command_id: str, run_id: str) -> bool:
        """A run takes the request on; a later run may take over what an earlier one did not finish."""
        return self._change_command(command_id, status=CommandStatus.STARTED.value, run_id=run_id)

    def finish(self, command_id: str, outcome: str, result: dict[str, Any], failed: bool = False) -> bool:
        """The request has ended, well or ``failed``. False where it had ended before: the first end stands."""
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
        """Record a submission before it happens. Repeating it does nothing."""
        with self._transaction() as connection:
            _inserted(
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
        """The end of the driver was seen. False where it was seen before, or the attempt is unknown."""
        with self._transaction() as connection:
            closed = connection.execute(
                t.attempts.update()
                .where(t.attempts.c.id == attempt, t.attempts.c.closed_at == "")
                .values(closed_at=_utc(), outcome=outcome)
            )
            return closed.rowcount == 1

    def open_attempts(self, replicator: str) -> tuple[AttemptRow, ...]:
        """Attempts whose driver may still run, oldest first."""
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
        """Take a table for copying, or find it taken by the same run (its first window stands). False where another run
        has it."""
        with self._transaction() as connection:
            if _inserted(
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
            gone = connection.execute(_claim(t.claims.delete(), replicator, table).where(t.claims.c.run_id == run_id))
            return gone.rowcount == 1

    def claims(self, replicator: str) -> tuple[Claim, ...]:
        query = sa.select(t.claims).where(t.claims.c.replicator == replicator).order_by(t.claims.c.table)
        with self._transaction() as connection:
            return tuple(Claim(**row._mapping) for row in connection.execute(query))

    # Index and audit

    def change_tables(
        self, replicator: str, change: Callable[[Mapping[str, TableRow]], Iterable[TableRow]]
    ) -> tuple[TableRow, ...]:
        """Write what ``change`` makes of the rows as they stand; other rows stay. Where somebody else wrote one of them
        meanwhile, ``change`` is called again with what stands now."""
        while True:
            before = self.tables(replicator)
            rows = tuple(change(before))
            if self._set_tables(replicator, rows, before):
                return rows

    def _set_tables(self, replicator: str, rows: Sequence[TableRow], before: Mapping[str, TableRow]) -> bool:
        with self._transaction() as connection:
            there = _table_rows(connection, replicator, lock=True)
            if any(there.get(row.table) != before.get(row.table) for row in rows):
                return False
            for row in rows:
                body = json.dumps(to_plain(row))
                if row.table in there:
                    this = (t.table_rows.c.replicator == replicator, t.table_rows.c.table == row.table)
                    connection.execute(t.table_rows.update().where(*this).values(body=body))
                elif not _inserted(connection, t.table_rows, replicator=replicator, table=row.table, body=body):
                    return False
        return True

    def tables(self, replicator: str) -> dict[str, TableRow]:
        with self._transaction() as connection:
            return _table_rows(connection, replicator)

    def write_audit(self, replicator: str, actor: str, action: str, detail: dict[str, Any]) -> None:
        """Add a line to the audit. ``detail`` must hold no secret and no row values."""
        with self._transaction() as connection:
            connection.execute(
                t.audit.insert().values(
                    at=_utc(), replicator=replicator, actor=actor, action=action, detail=json.dumps(detail)
                )
            )

    def audit(self, replicator: str, limit: int) -> tuple[AuditEntry, ...]:
        """The latest lines, newest first."""
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
        except (DBAPIError, OSError, UnicodeError) as error:  # UnicodeError: a host whose name cannot be one
            raise StateUnavailable(
                Problem(
                    "STA010",
                    "the state store cannot be used",
                    where=sa.engine.make_url(self.url).render_as_string(hide_password=True),
                    found=str(error.orig if isinstance(error, DBAPIError) else error).splitlines()[0][:200],
                    do="bring the database back; a damaged SQLite file may be removed and made again with "
                    "`airflow cdc state rebuild`",
                    data="source, change log and target tables are unchanged",
                )
            ) from error


def _table_rows(connection: Connection, replicator: str, lock: bool = False) -> dict[str, TableRow]:
    query = sa.select(t.table_rows).where(t.table_rows.c.replicator == replicator).order_by(t.table_rows.c.table)
    found = connection.execute(query.with_for_update() if lock else query)
    return {row.table: from_plain(TableRow, json.loads(row.body)) for row in found}


def _now(connection: Connection) -> float:
    """Seconds since 1970 by the clock that all users of this database share."""
    if connection.dialect.name == "sqlite":
        return time.time()
    return float(connection.execute(sa.select(sa.extract("epoch", sa.func.clock_timestamp()))).scalar_one())


def _utc() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _lease(statement: Any, replicator: str, lane: str) -> Any:
    return statement.where(t.leases.c.replicator == replicator, t.leases.c.lane == lane)


def _claim(statement: Any, replicator: str, table: str) -> Any:
    return statement.where(t.claims.c.replicator == replicator, t.claims.c.table == table)


def _inserted(connection: Connection, into: sa.Table, /, **values: Any) -> bool:
    """Insert a row; False where one with this key is there already."""
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
