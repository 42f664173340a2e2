"""The decision of a backfill: which windows are applied again, and which slices of tables are copied again. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from airflow_cdc_provider.core.decisions.facts import Facts
from airflow_cdc_provider.core.decisions.holes import last_hole
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.change_log import Manifest
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.slices import Slice, slice_between
from airflow_cdc_provider.core.times import parse_utc


@dataclass(frozen=True)
class Backfill:
    """``windows``: the first and the last one to apply again to ``tables``; ``slices``: to copy again. ``stop``: why
    nothing can be done."""

    windows: tuple[int, ...] = ()
    tables: tuple[str, ...] = ()
    slices: tuple[Slice, ...] = ()
    notes: tuple[str, ...] = ()
    stop: Problem | None = None


def plan_backfill(facts: Facts, streaming: Collection[str]) -> Backfill:
    """The windows of the interval are applied again to the tables that have applied them; of a table with slices, those
    that start in the interval are copied again instead. ``streaming``: the tables that take changes now."""
    assert facts.interval is not None
    start, end = parse_utc(facts.interval[0]), parse_utc(facts.interval[1])
    windows = sorted(facts.log.manifests.values(), key=lambda manifest: manifest.window)
    inside = [manifest.window for manifest in windows if _overlaps(manifest, start, end)]
    oldest = windows[0] if windows else None
    settings = {table.task.table: table.task.rule.snapshot.slices for table in facts.tables}
    notes = list[str]()
    if oldest and start < _span(oldest)[0] and (oldest.window > 1 or not inside):
        if not any(given.column for given in settings.values()):
            return Backfill(stop=_older_than_the_log(facts, oldest))
        notes.append("the interval is older than the change log: only slices are copied again")
        inside = []
    reasons = {table.task.table: reason for table in facts.tables if (reason := _why_not_repairable(table.task))}
    notes += [f"{table} {reasons[table]}: a backfill cannot repair it; use resync" for table in sorted(reasons)]
    slices = tuple(
        one
        for table, given in settings.items()
        if given.column and table in streaming and (one := slice_between(table, given, start, end))
    )
    sliced = {one.table for one in slices}
    repairable = tuple(table for table in streaming if table not in reasons.keys() | sliced)
    notes += _passed_holes(facts, repairable, inside)
    if not inside or not repairable:
        repairable, inside = (), []
        notes.append(f"no window between {start:%F %T} and {end:%F %T} to apply again")
    notes += [f"{one.table}: copies the rows with {one}" for one in slices]
    return Backfill((inside[0], inside[-1]) if inside else (), repairable, slices, tuple(notes))


def _why_not_repairable(task: TableTask) -> str:
    if not task.schema.key:
        return "has no key"
    return "keeps a history" if task.rule.history is not History.NONE else ""


def _passed_holes(facts: Facts, tables: Collection[str], windows: Sequence[int]) -> Iterator[str]:
    for control in (table.task.control for table in facts.tables):
        if control is None or control.table not in tables:
            continue
        if hole := last_hole((facts.log.manifests[number] for number in windows), control):
            yield f"{control.table} has a hole in window {hole}: windows up to {hole} are not applied again"


def _overlaps(manifest: Manifest, start: datetime, end: datetime) -> bool:
    first, last = _span(manifest)
    return first < end and last >= start


def _span(manifest: Manifest) -> tuple[datetime, datetime]:
    return parse_utc(manifest.commit_ts_min or manifest.sealed_at), parse_utc(
        manifest.commit_ts_max or manifest.sealed_at
    )


def _older_than_the_log(facts: Facts, oldest: Manifest) -> Problem:
    assert facts.interval is not None
    return Problem(
        "LOG006",
        "the interval is older than the change log",
        where=f"{facts.definition.name}, {facts.interval[0]} to {facts.interval[1]}",
        found=f"oldest window {oldest.window}, from {_span(oldest)[0]:%F %T}",
        allowed=f"an interval that starts at {_span(oldest)[0]:%F %T} UTC or later",
        do=f"narrow the interval, or copy again: airflow cdc resync {facts.definition.name}",
        data="nothing was changed",
    )


def outdated_backfill(replicator: str, run_id: str, interval: tuple[str, str]) -> Problem:
    """Of a backfill with an earlier version of the YAML than that of the last run."""
    start = interval[0]
    return Problem(
        "RUN007",
        "this backfill has an earlier version of the YAML than the last run",
        where=f"run {run_id}",
        found=f"the interval {start} to {interval[1]}, which no other run repairs or copies",
        allowed="the version of the last run, or a later one",
        do=f"airflow backfill create --dag-id {replicator} --from-date {start} --to-date {start} "
        "--reprocess-behavior failed --run-on-latest-version",
        data="nothing was read or written",
    )
