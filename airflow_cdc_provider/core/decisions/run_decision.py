"""What the next run does. Pure: the same facts always give the same decision, and nothing has happened yet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from airflow_cdc_provider.core.decisions.commands import RECORD_COMMANDS, CommandKind
from airflow_cdc_provider.core.decisions.facts import Facts, TableFacts
from airflow_cdc_provider.core.decisions.run_plan import Mode, RunPlan
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.decisions.table_decisions import (
    Cause,
    TableAction,
    TableDecision,
    decide_table,
    last_hole,
)
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.change_log import Manifest
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.table.states import HOLDS_ACKNOWLEDGEMENT, TableState
from airflow_cdc_provider.core.times import parse_utc

SNAPSHOT, EXTRACT, STAGE, VERIFY = "snapshot", "extract", "stage", "verify"
PAUSE_STREAM, CLOSE_WINDOW = "reconcile.pause_stream", "close_window"


@dataclass(frozen=True)
class RunDecision:
    """``plan`` is what later tasks read. ``stop`` is the trouble of the replicator as a whole: nothing moves.
    ``lost``: the source does not serve our position any more; what the log holds may still be applied.
    ``reopen``: the stream must be opened, for the first time or anew, before anything else; then the facts are gathered
    again. ``wait``: a backfill must be decided again when the lane is free, since no later run does its work.
    ``idle``: an empty window may be sealed up to there, without Spark.
    ``raise_fence``: tables that somebody took back. ``at`` is when the source was asked, UTC, ISO."""

    replicator: str
    plan: RunPlan
    at: str
    verdicts: tuple[TableDecision, ...] = ()
    unselected: tuple[Problem, ...] = ()
    stop: Problem | None = None
    lost: Problem | None = None
    reopen: bool = False
    wait: bool = False
    idle: Position | None = None
    raise_fence: tuple[str, ...] = ()
    follow: tuple[str, ...] = (CLOSE_WINDOW,)
    notes: tuple[str, ...] = ()

    @property
    def needs_copy_lane(self) -> bool:
        return bool(self.plan.copy or self.plan.reconcile)

    @property
    def needs_stream_lane(self) -> bool:
        seals = self.idle is not None or self.reopen
        return seals or any(task in self.follow for task in (EXTRACT, STAGE, VERIFY))


def decide(facts: Facts) -> RunDecision:
    """The decision for one run. A backfill that reaches before the change log gives a ``stop`` that names its oldest
    window."""
    verdicts = tuple(decide_table(facts, table) for table in facts.tables)
    plan = RunPlan(
        run_id=facts.run_id,
        mode=facts.mode,
        log_id=facts.log.log_id,
        owner=facts.owner,
        epoch=facts.log.epoch,
        source_identity=facts.source_identity,
        tables=tuple(_task(table, verdict) for table, verdict in zip(facts.tables, verdicts, strict=True)),
        sealed=facts.log.sealed,
        lo=dict(facts.log.hi),
        limit=dict(facts.stream.limit),
        reasons={verdict.table: verdict.reason for verdict in verdicts if verdict.reason},
    )
    base = RunDecision(facts.definition.name, plan, facts.at, verdicts, facts.unselected, lost=facts.stream.lost)
    if stop := replicator_stop(verdicts):
        return replace(base, stop=stop)
    if facts.mode is Mode.REPAIR:
        return _repair(facts, base)
    if _must_open(facts, verdicts):
        return replace(base, reopen=facts.stream_lane, notes=() if facts.stream_lane else (_NO_STREAM_LANE,))
    return _stream(facts, base)


def _task(table: TableFacts, verdict: TableDecision) -> TableTask:
    """Only what the stream leads to may become the identity of the copy."""
    led_to = verdict.action is TableAction.STREAM and not verdict.compare
    return replace(table.task, identity=table.identity if led_to else None, rewritten=verdict.compare)


_NO_STREAM_LANE = "another run holds the stream lane; extract, stage and merge are left to it"
_WAIT_FOR_STREAM_LANE = "another run holds the stream lane; this run waits for it"
_NO_COPY_LANE = "another run holds the copy lane; copies are left to a later run"


def replicator_stop(verdicts: Iterable[TableDecision]) -> Problem | None:
    """Another log, or another source: every table's trouble as soon as no table stands on the present one."""
    verdicts = tuple(verdicts)
    moving = any(
        verdict.action in (TableAction.STREAM, TableAction.RECONCILE, TableAction.COPYING) for verdict in verdicts
    )
    causes = [v.problem for v in verdicts if v.cause is not Cause.TABLE and v.problem is not None]
    return causes[0] if causes and not moving else None


def _must_open(facts: Facts, verdicts: tuple[TableDecision, ...]) -> bool:
    """There is no stream yet; or tables are to be copied again and the old one leads to nowhere. Once another source is
    adopted the log's epoch is above that of every table copied from the old one."""
    copied = {v.table for v in verdicts if v.action in (TableAction.COPY, TableAction.RECONCILE)}
    if facts.log.sealed == 0:
        return bool(facts.tables)
    if facts.stream.lost:
        return bool(copied)
    controls = [table.task.control for table in facts.tables if table.task.control]
    known = any(control.source_identity == facts.source_identity for control in controls)
    strange = any(
        control.table in copied and control.source_identity and control.epoch >= facts.log.epoch for control in controls
    )
    return strange and not known


def _repair(facts: Facts, base: RunDecision) -> RunDecision:
    """A backfill: the windows of its interval are applied again to the tables that stand behind them."""
    assert facts.interval is not None
    start, end = parse_utc(facts.interval[0]), parse_utc(facts.interval[1])
    windows = sorted(facts.log.manifests.values(), key=lambda manifest: manifest.window)
    inside = [manifest.window for manifest in windows if _overlaps(manifest, start, end)]
    oldest = windows[0] if windows else None
    if oldest and start < _span(oldest)[0] and (oldest.window > 1 or not inside):
        return replace(base, stop=_older_than_the_log(facts, oldest))
    keyless = {table.task.table for table in facts.tables if not table.task.schema.key}
    repairable = tuple(
        v.table for v in base.table_decisions if v.action is TableAction.STREAM and v.table not in keyless
    )
    notes = tuple(f"{table} has no key: a backfill cannot repair it, use resync" for table in sorted(keyless))
    notes += tuple(_passed_holes(facts, repairable, inside))
    if not inside or not repairable:
        return replace(base, notes=(*notes, f"no window between {start:%F %T} and {end:%F %T} to apply again"))
    if not facts.stream_lane:
        return replace(base, wait=True, notes=(*notes, _WAIT_FOR_STREAM_LANE))
    plan = replace(base.plan, stream=repairable, repair=(inside[0], inside[-1]))
    fence = tuple(v.table for v in base.table_decisions if v.fence and v.table in repairable)
    return replace(base, plan=plan, raise_fence=fence, notes=notes, follow=(STAGE, CLOSE_WINDOW))


def _passed_holes(facts: Facts, tables: Collection[str], windows: Sequence[int]) -> Iterator[str]:
    for control in (table.task.control for table in facts.tables):
        if control is None or control.table not in tables:
            continue
        if hole := last_hole((facts.log.manifests[number] for number in windows), control):
            yield f"{control.table} has a hole in window {hole}: nothing up to there is applied again"


def _stream(facts: Facts, base: RunDecision) -> RunDecision:
    of = {move: tuple(v.table for v in base.table_decisions if v.action is move) for move in TableAction}
    notes: list[str] = []
    copy, reconcile = of[TableAction.COPY], of[TableAction.RECONCILE]
    if (copy or reconcile) and not facts.copy_lane:
        copy, reconcile = (), ()
        notes.append(_NO_COPY_LANE)
    new = (facts.stream.has_changes or _new_columns(facts, base.table_decisions)) and facts.stream.lost is None
    behind = any(
        v.action is TableAction.STREAM and (v.pending_window is not None or v.dirty) for v in base.table_decisions
    )
    verify = tuple(command.id for command in facts.commands if command.kind is CommandKind.VERIFY)
    rewritten = tuple(v.table for v in base.table_decisions if v.compare)
    if (verify or rewritten) and (copy or reconcile):
        notes.append("comparisons wait until the copies of this run are done")
        verify, rewritten = (), ()
    let_go = () if verify or rewritten else _about_records(facts, of[TableAction.STREAM])
    if (new or behind or verify or rewritten or let_go) and not facts.stream_lane:
        notes.append(_NO_STREAM_LANE)
        new, behind, verify, rewritten, let_go = False, False, (), (), ()
    behind = behind or bool(let_go)

    comparing = bool(verify or rewritten)
    extract = new and not comparing
    started = {v.command for v in base.table_decisions if v.command and v.table in (*copy, *reconcile)}
    plan = replace(
        base.plan,
        mode=Mode.VERIFY if comparing else Mode.STREAM,
        extract=extract,
        copy=copy,
        stream=of[TableAction.STREAM] if extract or behind or comparing else (),
        reconcile=reconcile,
        compare=of[TableAction.STREAM] if verify else rewritten,
        commands=tuple(c.id for c in facts.commands if c.id in started or c.id in verify or c.id in let_go),
    )
    follow = [SNAPSHOT] if copy else []
    if comparing:
        follow.append(VERIFY)
    elif extract or behind:
        follow.append(EXTRACT if extract else STAGE)
    if reconcile:
        follow.append(PAUSE_STREAM)
    fence = tuple(v.table for v in base.table_decisions if v.fence and v.table in plan.stream)
    idle = facts.stream.idle if facts.stream_lane and facts.stream.lost is None and not (new or comparing) else None
    return replace(base, plan=plan, idle=idle, raise_fence=fence, follow=(*follow, CLOSE_WINDOW), notes=tuple(notes))


def _new_columns(facts: Facts, verdicts: Iterable[TableDecision]) -> bool:
    """A column was added to a table that may not change for a long time: its values in older rows are due now."""
    return any(
        verdict.action is TableAction.STREAM
        and verdict.pending_window is None
        and table.identity is not None
        and table.task.control is not None
        and table.task.control.schema is not None
        and not set(table.task.schema.names) <= set(table.task.control.schema.names)
        for table, verdict in zip(facts.tables, verdicts, strict=True)
    )


def _about_records(facts: Facts, moving: tuple[str, ...]) -> tuple[str, ...]:
    """Requests about bad records of tables that take changes now. Others wait until theirs do."""
    return tuple(
        command.id
        for command in facts.commands
        if command.kind in RECORD_COMMANDS and any(command.names(table) for table in moving)
    )


def effective_window(sealed: int, window: int, behind: int | None) -> int:
    """How far a table has come: windows without records of it pass without a commit."""
    return max(window, sealed if behind is None else behind - 1)


def acknowledgeable(sealed: int, tables: Iterable[tuple[TableState, int, int | None]]) -> int:
    """The last window the source may forget: ``tables`` are state, cursor and first window behind of each. Paused and
    blocked tables, and those being copied, do not count; the change log keeps what they need."""
    holding = (row for row in tables if row[0] in HOLDS_ACKNOWLEDGEMENT)
    return min([sealed, *(effective_window(sealed, window, behind) for _, window, behind in holding)])


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
