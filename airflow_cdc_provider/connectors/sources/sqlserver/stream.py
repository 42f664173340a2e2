"""The change tables as a stream: probed on the worker, read window by window.

The capture job of the server fills the change tables from its transaction log, some seconds after each commit, and in
the order of commits: a commit in ``cdc.lsn_time_mapping`` means that all earlier ones are captured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from airflow_cdc_provider.connectors.source import Boundary, SourceStatus, StreamItem, StreamSplit
from airflow_cdc_provider.connectors.sources.sqlserver import queries
from airflow_cdc_provider.connectors.sources.sqlserver.alterations import Alteration, distinct
from airflow_cdc_provider.connectors.sources.sqlserver.capture_instances import Coverage, cover, switches
from airflow_cdc_provider.connectors.sources.sqlserver.catalog import (
    CaptureInstance,
    CatalogTable,
    read_database,
    read_instances,
    read_retention,
    read_starts,
    read_tables,
)
from airflow_cdc_provider.connectors.sources.sqlserver.check import database_problems
from airflow_cdc_provider.connectors.sources.sqlserver.check_tables import not_captured
from airflow_cdc_provider.connectors.sources.sqlserver.client import Client, Session, position_lost
from airflow_cdc_provider.connectors.sources.sqlserver.options import SqlServerOptions
from airflow_cdc_provider.connectors.sources.sqlserver.positions import (
    AT,
    lsn_of,
    lsn_text,
    position_lsn,
    position_of,
)
from airflow_cdc_provider.connectors.sources.sqlserver.table_stream import TableStream
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import PositionLost, SourceUnavailable, raise_problems
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.log.retained_log import RetainedLog

COMMITS_AT_ONCE = 1000
"""Transactions between two boundaries. A window can end at a boundary."""

IDLE = timedelta(hours=1)
"""How far the stream must have advanced before an empty window advances our position."""

CAPTURE_LIMIT_S = 900
"""An idle capture job records its progress about every five minutes."""

POLL_S = 2


@dataclass(frozen=True)
class Commit:
    """``at``: local time of the server."""

    lsn: int
    at: str

    @property
    def position(self) -> Position:
        return position_of(self.lsn, self.at)


@dataclass(frozen=True)
class Catalog:
    """``alterations``: by object id of the table."""

    tables: Mapping[str, CatalogTable]
    instances: Mapping[int, tuple[CaptureInstance, ...]]
    alterations: Mapping[int, tuple[Alteration, ...]]

    def instances_of(self, table: str) -> tuple[CaptureInstance, ...]:
        found = self.tables.get(table)
        return self.instances.get(found.object_id, ()) if found else ()

    def alterations_of(self, table: str) -> tuple[Alteration, ...]:
        found = self.tables.get(table)
        return self.alterations.get(found.object_id, ()) if found else ()


class ChangeTables:
    def __init__(
        self,
        client: Client,
        options: SqlServerOptions,
        replicator: str,
        sleep: Callable[[float], None],
    ) -> None:
        self.client, self.options, self.replicator = client, options, replicator
        self._sleep = sleep

    def open(self) -> Position:
        """The last captured commit. Raises CheckFailed if the database captures no changes, SourceUnavailable (SRC114)
        if none was captured yet."""
        with self.client.session("open") as session:
            raise_problems(database_problems(read_database(session), self.client.address))
            return self._last_commit(session).position

    def status(self, position: Position, tables: Sequence[str]) -> SourceStatus:
        with self.client.session("status") as session:
            offset = self._require_capture(session)
            ((now,),) = session.rows(queries.NOW)
            limit = self._require_available(session, position)
            catalog = self._catalog(session, tables)
            outside = {
                name: not_captured(table, self.client.address, self.replicator)
                for name, table in catalog.tables.items()
                if name in tables and not catalog.instances_of(name)
            }
            after = position_lsn(position)
            captured = [name for name in tables if name in catalog.tables and name not in outside]
            changed = limit.lsn > after and self._has_changes(session, catalog, captured, after, limit.lsn)
        idle = not changed and limit.lsn > after and _advanced(position, limit)
        return SourceStatus(changed, limit.position, limit.position if idle else None, outside, utc(now, offset))

    def silent_since(self) -> datetime | None:
        """The last captured commit, if the capture job should have recorded its progress since. Raises PositionLost
        without Change Data Capture."""
        with self.client.session("status") as session:
            offset = self._require_capture(session)
            last = next(session.rows(queries.LAST_COMMIT), None)
            if last is None:
                return None
            ((age_s,),) = session.rows(queries.age(last[1]))
        return utc(last[1], offset) if int(age_s) > CAPTURE_LIMIT_S else None

    def retained_log(self, position: Position | None) -> RetainedLog:
        """Raises PositionLost if the server no longer has the position."""
        with self.client.session("retained_log") as session:
            offset = self._require_capture(session)
            if position is not None:
                self._require_available(session, position)
            first = next(session.rows(queries.FIRST_COMMIT), None)
            keeps = read_retention(session)
        return RetainedLog(since=None if first is None else utc(first[1], offset), keeps=keeps)

    def read(self, split: StreamSplit, tasks: Sequence[TableTask], epoch: int) -> Iterator[StreamItem]:
        after, limit = position_lsn(split.lo), position_lsn(split.limit)
        with self.client.session("read") as session:
            offset = self._require_capture(session)
            self._require_available(session, split.lo)
            catalog = self._catalog(session, [task.table for task in tasks])
            streams = [
                TableStream(
                    session,
                    task,
                    catalog.tables.get(task.table),
                    catalog.instances_of(task.table),
                    catalog.alterations_of(task.table),
                    cover(catalog.instances_of(task.table), after, limit),
                    epoch,
                )
                for task in tasks
            ]
            cuts = sorted({lsn for stream in streams for lsn in switches(stream.coverage.segments)})
            for commits in self._slices(session, after, Commit(limit, split.limit.get(AT, "")), cuts):
                times = {commit.lsn: utc(commit.at, offset) for commit in commits if commit.at}
                for stream in streams:
                    yield from stream.read(after, commits[-1].lsn, times)
                starts = read_starts(session)
                for stream in streams:
                    yield from stream.end(after, commits[-1].lsn, starts)
                after = commits[-1].lsn
                if after == limit:
                    yield from (item for stream in streams for item in stream.changed_columns(limit))
                yield Boundary(commits[-1].position)

    def wait_for_capture(self) -> None:
        """Until a transaction is captured that committed after this call. Raises SourceUnavailable (CPY010)."""
        with self.client.session("wait") as session:
            self._require_capture(session)
            last = self._last_commit(session)
            ((now,),) = session.rows(queries.NOW)
            for _ in range(CAPTURE_LIMIT_S // POLL_S):
                if next(session.rows(queries.committed_later(last.lsn, now)), None) is not None:
                    return
                self._sleep(POLL_S)
        raise SourceUnavailable.of(
            "CPY010",
            "the capture job did not reach the present",
            where=self.client.address,
            found=f"last captured commit at {last.at}, {CAPTURE_LIMIT_S} s ago it was {now}",
            allowed="a capture job that runs; without changes it records its progress every five minutes",
            do="start it: EXEC sys.sp_cdc_start_job @job_type = N'capture'; see sys.dm_cdc_errors",
            data="nothing was written",
        )

    def _slices(self, session: Session, after: int, limit: Commit, cuts: Sequence[int]) -> Iterator[list[Commit]]:
        """The commits up to the limit, some at a time. A slice ends at each of ``cuts``, which may lie between
        commits."""
        while after < limit.lsn:
            end = next((cut for cut in cuts if after < cut < limit.lsn), limit.lsn)
            rows = list(session.rows(queries.commits(after, end, COMMITS_AT_ONCE)))
            commits = [Commit(lsn_of(lsn), at) for lsn, at in rows]
            if len(commits) < COMMITS_AT_ONCE and end == limit.lsn and (not commits or commits[-1].lsn < end):
                commits.append(limit)
            after = commits[-1].lsn if len(commits) == COMMITS_AT_ONCE else end
            if commits:
                yield commits

    def _catalog(self, session: Session, tables: Sequence[str]) -> Catalog:
        described = read_tables(session, self.options.schemas)
        ours = {name: described[name] for name in tables if name in described}
        instances = read_instances(session)
        ids = [table.object_id for table in ours.values()]
        rows = list(session.rows(queries.ddl(ids))) if ids else []
        return Catalog(ours, instances, distinct((source_id, lsn_of(lsn), text) for source_id, lsn, text in rows))

    def _has_changes(self, session: Session, catalog: Catalog, tables: Sequence[str], after: int, upto: int) -> bool:
        """Rows, a change of the capture instance, altered columns, or changes that are lost."""
        coverages = [cover(catalog.instances_of(name), after, upto) for name in tables]
        if any(coverage.lost or len(coverage.segments) > 1 for coverage in coverages):
            return True
        if any(after < one.lsn <= upto for name in tables for one in catalog.alterations_of(name)):
            return True
        parts = _parts(coverages)
        return bool(parts) and next(session.rows(queries.any_change(parts)), None) is not None

    def _require_capture(self, session: Session) -> int:
        """The UTC offset of the server's clock in minutes. Raises PositionLost if Change Data Capture is disabled."""
        database = read_database(session)
        if not database.captures:
            raise self._lost("Change Data Capture is not enabled for the database")
        return database.utc_offset_minutes

    def _last_commit(self, session: Session) -> Commit:
        row = next(session.rows(queries.LAST_COMMIT), None)
        if row is None:
            raise SourceUnavailable.of(
                "SRC114",
                "no transaction has been captured yet",
                where=self.client.address,
                found="cdc.lsn_time_mapping is empty",
                allowed="a capture job that runs; without changes it records its progress every five minutes",
                do="start it: EXEC sys.sp_cdc_start_job @job_type = N'capture';",
            )
        return Commit(lsn_of(row[0]), row[1])

    def _require_available(self, session: Session, position: Position) -> Commit:
        """The last captured commit. Raises PositionLost if the log is not the one that was read, or if cleanup has
        removed the position."""
        row = next(session.rows(queries.LAST_COMMIT), None)
        lsn = position_lsn(position)
        if row is None:
            raise self._lost("cdc.lsn_time_mapping is empty: Change Data Capture was enabled again")
        last = Commit(lsn_of(row[0]), row[1])
        if last.lsn < lsn:
            raise self._lost(f"the last captured commit is {lsn_text(last.lsn)}, before our position {lsn_text(lsn)}")
        if not position.get(AT):
            return last
        own = next(session.rows(queries.commit_at(lsn)), None)
        if own is None:
            first = next(session.rows(queries.FIRST_COMMIT))
            where = "was removed by cleanup" if lsn_of(first[0]) > lsn else "is not in cdc.lsn_time_mapping"
            raise self._lost(f"commit {lsn_text(lsn)} {where}; the first one there is {lsn_text(lsn_of(first[0]))}")
        if own[1] != position[AT]:
            raise self._lost(f"commit {lsn_text(lsn)} is of {own[1]}, not of {position[AT]}: it is another log")
        return last

    def _lost(self, found: str) -> PositionLost:
        return position_lost(self.client.address, self.replicator, found)


def _parts(coverages: Sequence[Coverage]) -> list[tuple[str, int, int]]:
    return [
        (segment.instance.change_table, segment.after, segment.upto)
        for coverage in coverages
        for segment in coverage.segments
    ]


def _advanced(position: Position, limit: Commit) -> bool:
    at = position.get(AT)
    return not at or datetime.fromisoformat(limit.at) - datetime.fromisoformat(at) >= IDLE


def utc(at: str, offset_minutes: int) -> datetime:
    """``at``: local time of the server. Its offset is the present one, so a time before a change of the clocks is an
    hour off; it is never used for order."""
    return (datetime.fromisoformat(at) - timedelta(minutes=offset_minutes)).replace(tzinfo=UTC)
