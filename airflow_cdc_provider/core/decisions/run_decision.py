"""The decision of a run. Pure: equal facts give equal decisions, without side effects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from airflow_cdc_provider.core.decisions.backfills import plan_backfill
from airflow_cdc_provider.core.decisions.commands import RECORD_COMMANDS
from airflow_cdc_provider.core.decisions.comparisons import Comparisons, decide_comparisons
from airflow_cdc_provider.core.decisions.facts import Facts, TableFacts
from airflow_cdc_provider.core.decisions.listed_tables import GONE, GoneTable, NewTable
from airflow_cdc_provider.core.decisions.pending_resyncs import open_resyncs
from airflow_cdc_provider.core.decisions.run_plan import Mode, RunPlan
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.decisions.table_decisions import (
    Cause,
    TableAction,
    TableDecision,
    decide_table,
)
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.change_log import EXPIRED, Hole
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.table.copies import source_table
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.schema_changes import ChangeKind, column_changes
from airflow_cdc_provider.core.table.states import HOLDS_ACKNOWLEDGEMENT, TableState

SNAPSHOT, EXTRACT, STAGE, VERIFY = "snapshot", "extract", "stage", "verify"
OPEN_WINDOW, PAUSE_STREAM, CLOSE_WINDOW = "open_window", "reconcile.pause_stream", "close_window"


@dataclass(frozen=True)
class RunDecision:
    """``plan``: for the later tasks. ``stop``: a problem of the whole replicator; nothing is applied. ``lost``: the
    source no longer serves the position; sealed windows can still be applied. ``reopen``: the stream must be opened,
    for the first time or again, before new facts are gathered. ``wait``: a backfill must be decided again when the lane
    is free, since no later run executes it. ``idle``: an empty window may be sealed up to this position, without Spark.
    ``holes``: to be sealed, of tables that the log of the source leaves out.
    ``raise_fence``: tables that another tool restored. ``new``: tables that are not copied yet. ``gone``: tables that
    the source no longer lists, and that are not blocked. ``follow``: the tasks to run next. ``at``: the time of the
    source's status, UTC in ISO 8601 format; ``source_at``: the same by the source's clock, empty if it shows none.
    ``outdated``: a run with a later version of the YAML was opened before, and this one does nothing;
    a backfill has a ``stop`` then.
    ``unread``: the source has changes that this run does not read. ``pending``: the ids of the open commands."""

    replicator: str
    plan: RunPlan
    at: str
    table_decisions: tuple[TableDecision, ...] = ()
    unselected: tuple[Problem, ...] = ()
    stop: Problem | None = None
    lost: Problem | None = None
    reopen: bool = False
    wait: bool = False
    idle: Position | None = None
    holes: tuple[Hole, ...] = ()
    raise_fence: tuple[str, ...] = ()
    new: tuple[NewTable, ...] = ()
    gone: tuple[GoneTable, ...] = ()
    follow: tuple[str, ...] = (CLOSE_WINDOW,)
    notes: tuple[str, ...] = ()
    unread: bool = False
    source_at: str = ""
    pending: tuple[str, ...] = ()
    outdated: bool = False

    @property
    def needs_copy_lane(self) -> bool:
        return bool(self.plan.copy or self.plan.reconcile)

    @property
    def needs_stream_lane(self) -> bool:
        seals = self.idle is not None or self.reopen or bool(self.holes)
        return seals or any(task in self.follow for task in (EXTRACT, STAGE, VERIFY))

    def why_unselected(self, copy: str) -> Problem | None:
        """Why the run could not select a copy that the YAML may select: a problem of its own, of its source table or of
        the whole replicator. None if it left the YAML, or was selected."""
        own = [problem for problem in self.unselected if problem.where in (copy, self.replicator)]
        gone = [problem for problem in own if problem.code == GONE]
        of_table = [
            problem
            for problem in self.unselected
            if problem.code != GONE and source_table(problem.where) == source_table(copy)
        ]
        return next(iter((*gone, *own, *of_table)), None)


def decide(facts: Facts) -> RunDecision:
    """The decision for one run. A backfill that starts before the oldest window of the change log gives a ``stop``."""
    decisions = tuple(_after_window(table, decide_table(facts, table)) for table in facts.tables)
    plan = RunPlan(
        run_id=facts.run_id,
        mode=facts.mode,
        log_id=facts.log.log_id,
        owner=facts.owner,
        epoch=facts.log.epoch,
        source_identity=facts.source_identity,
        tables=tuple(_task(facts, table, decision) for table, decision in zip(facts.tables, decisions, strict=True)),
        sealed=facts.log.sealed,
        lo=dict(facts.log.hi),
        limit=dict(facts.stream.limit),
        reasons={decision.table: decision.reason for decision in decisions if decision.reason},
        hash_key_id=facts.hash_key_id,
    )
    base = RunDecision(
        facts.definition.name,
        plan,
        facts.at,
        decisions,
        facts.unselected,
        lost=facts.stream.lost,
        new=facts.new,
        gone=facts.gone,
        unread=facts.mode is Mode.REPAIR and facts.stream.has_changes,
        source_at=facts.stream.at,
        pending=tuple(command.id for command in facts.commands),
    )
    if stop := replicator_stop(decisions):
        return replace(base, stop=stop)
    if facts.mode is Mode.REPAIR:
        return _repair(facts, base)
    if _must_open(facts, decisions):
        return replace(base, reopen=facts.stream_lane, notes=() if facts.stream_lane else (_NO_STREAM_LANE,))
    return _stream(facts, base)


def _after_window(table: TableFacts, decision: TableDecision) -> TableDecision:
    """A window that another run reads without the table lacks its changes, so a copy before its end would be
    incomplete."""
    if not table.missed_by or decision.action not in _COPIES:
        return decision
    reason = f"its copy begins after the window that run {table.missed_by} reads without it"
    return replace(decision, reason=reason, waits=True)


def _task(facts: Facts, table: TableFacts, decision: TableDecision) -> TableTask:
    """The identity of the copy changes only if the stream carries all changes up to it."""
    carried = decision.action is TableAction.STREAM and not decision.compare
    return replace(
        table.task,
        identity=table.identity if carried else None,
        rewritten=decision.compare,
        resyncs=open_resyncs(facts.commands, table.task.table),
    )


_COPIES = frozenset({TableAction.COPY, TableAction.RECONCILE})
_NO_STREAM_LANE = "another run has the lease of the stream lane; this run skips extract, stage and merge"
_WAIT_FOR_STREAM_LANE = "another run has the lease of the stream lane; this run waits for it"
_NO_COPY_LANE = "another run has the lease of the copy lane; a later run makes the copies"


def replicator_stop(decisions: Iterable[TableDecision]) -> Problem | None:
    """A different log or source stops the whole replicator if no table belongs to the present one."""
    decisions = tuple(decisions)
    active = any(
        decision.action in (TableAction.STREAM, TableAction.RECONCILE, TableAction.COPYING) for decision in decisions
    )
    causes = [d.problem for d in decisions if d.cause is not Cause.TABLE and d.problem is not None]
    return causes[0] if causes and not active else None


def _must_open(facts: Facts, decisions: tuple[TableDecision, ...]) -> bool:
    """There is no stream yet, or tables are copied again and the position in the old stream is lost or belongs to
    another source. After a change of the source the log's epoch is above that of every table copied from the old
    one."""
    copied = {d.table for d in decisions if d.action in (TableAction.COPY, TableAction.RECONCILE)}
    if facts.log.sealed == 0:
        return any(table.refused is None for table in facts.tables)
    if facts.stream.lost:
        return bool(copied)
    controls = [table.task.control for table in facts.tables if table.task.control]
    same_source = any(control.source_identity == facts.source_identity for control in controls)
    other_source = any(
        control.table in copied and control.source_identity and control.epoch >= facts.log.epoch for control in controls
    )
    return other_source and not same_source


def _repair(facts: Facts, base: RunDecision) -> RunDecision:
    backfill = plan_backfill(facts, [v.table for v in base.table_decisions if v.action is TableAction.STREAM])
    if backfill.stop:
        return replace(base, stop=backfill.stop)
    tables = (*backfill.tables, *(one.table for one in backfill.slices))
    if not tables:
        return replace(base, notes=backfill.notes)
    if not facts.stream_lane:
        return replace(base, wait=True, notes=(*backfill.notes, _WAIT_FOR_STREAM_LANE))
    plan = replace(base.plan, stream=tables, repair=backfill.windows, slices=backfill.slices)
    fence = tuple(v.table for v in base.table_decisions if v.fence and v.table in tables)
    return replace(base, plan=plan, raise_fence=fence, notes=backfill.notes, follow=(STAGE, CLOSE_WINDOW))


def _stream(facts: Facts, base: RunDecision) -> RunDecision:
    tables = {action: tuple(v.table for v in base.table_decisions if v.action is action) for action in TableAction}
    notes: list[str] = []
    copy, reconcile = tables[TableAction.COPY], tables[TableAction.RECONCILE]
    if (copy or reconcile) and not facts.copy_lane:
        copy, reconcile = (), ()
        notes.append(_NO_COPY_LANE)
    waiting = {v.table: v.reason for v in base.table_decisions if v.waits and v.table in (*copy, *reconcile)}
    copy, reconcile = (tuple(table for table in part if table not in waiting) for part in (copy, reconcile))
    notes += [f"{table}: {reason}" for table, reason in waiting.items()]
    new = (facts.stream.has_changes or _changed_columns(facts, base.table_decisions)) and facts.stream.lost is None
    pending = any(
        v.action is TableAction.STREAM and (v.pending_window is not None or v.dirty) for v in base.table_decisions
    )
    comparisons = decide_comparisons(facts, base.table_decisions)
    if comparisons.requested and _may_succeed(facts, (*copy, *reconcile)):
        notes.append("comparisons wait for the copies of this run")
        comparisons = Comparisons()
    record_commands = () if comparisons.requested else _record_commands(facts, tables[TableAction.STREAM])
    unread = new and not facts.stream_lane
    if (new or pending or comparisons.requested or record_commands) and not facts.stream_lane:
        notes.append(_NO_STREAM_LANE)
        new, pending, comparisons, record_commands = False, False, Comparisons(), ()
    pending = pending or bool(record_commands)

    comparing = comparisons.requested
    futile = () if comparing else decide_comparisons(facts, base.table_decisions).futile
    extract = new and not comparing
    started = {v.command for v in base.table_decisions if v.command and v.table in (*copy, *reconcile)}
    plan = replace(
        base.plan,
        mode=Mode.VERIFY if comparing else Mode.STREAM,
        extract=extract,
        copy=copy,
        stream=tables[TableAction.STREAM] if extract or pending or comparing else (),
        reconcile=reconcile,
        compare=comparisons.tables,
        repair_tables=comparisons.repaired,
        sampled=comparisons.sampled,
        commands=tuple(
            c.id
            for c in facts.commands
            if c.id in started or c.id in (*comparisons.commands, *futile, *record_commands)
        ),
    )
    follow = [SNAPSHOT] if copy else []
    if comparing:
        follow.append(VERIFY)
    elif extract or pending:
        follow.append(EXTRACT if extract else STAGE)
    if reconcile:
        follow.append(PAUSE_STREAM)
    fence = tuple(v.table for v in base.table_decisions if v.fence and v.table in plan.stream)
    left_out = {one.task.source_table: one.left_out for one in facts.tables if one.left_out}
    sealing = facts.stream_lane and facts.stream.lost is None
    idle = facts.stream.idle if sealing and not (new or comparing) else None
    return replace(
        base,
        plan=plan,
        idle=idle,
        holes=tuple(Hole(EXPIRED, table, "", detail=why) for table, why in left_out.items()) if sealing else (),
        raise_fence=fence,
        follow=(*follow, CLOSE_WINDOW),
        notes=tuple(notes),
        unread=unread,
    )


def _may_succeed(facts: Facts, copies: Iterable[str]) -> bool:
    """Whether one of these copies did not fail in the last run. A copy that fails in each run must not stop the
    comparisons of all tables; they are made beside it."""
    failing = {table.task.table for table in facts.tables if table.failing}
    return not failing.issuperset(copies)


def _changed_columns(facts: Facts, decisions: Iterable[TableDecision]) -> bool:
    """Whether columns changed without other changes of the table, so that its copy must follow now. A dropped column
    that is kept may wait for the next change."""
    return any(
        decision.action is TableAction.STREAM
        and decision.pending_window is None
        and table.announced
        and table.task.control is not None
        and table.task.control.schema is not None
        and _must_follow(facts, table.task, table.task.control.schema)
        for table, decision in zip(facts.tables, decisions, strict=True)
    )


def _must_follow(facts: Facts, task: TableTask, copied: TableSchema) -> bool:
    changes = column_changes(copied, task.schema)
    policy = task.rule.schema_changes.over(facts.definition.schema_changes)
    return not policy.passes(changes) or any(change.kind is not ChangeKind.DROP_COLUMN for change in changes)


def _record_commands(facts: Facts, tables: tuple[str, ...]) -> tuple[str, ...]:
    """The commands for bad records of the given tables, which apply changes in this run."""
    return tuple(
        command.id
        for command in facts.commands
        if command.kind in RECORD_COMMANDS and any(command.names(table) for table in tables)
    )


def effective_window(sealed: int, window: int, pending: int | None) -> int:
    """The last window that a table has applied, including windows without records of it, which need no commit.
    ``pending``: its first window with records after the cursor."""
    return max(window, sealed if pending is None else pending - 1)


def acknowledgeable(sealed: int, tables: Iterable[tuple[TableState, int, int | None]]) -> int:
    """The last window that can be acknowledged. ``tables``: state, cursor and first pending window of each. Tables that
    are paused, blocked or being copied do not count; the change log keeps their windows."""
    holding = (row for row in tables if row[0] in HOLDS_ACKNOWLEDGEMENT)
    return min([sealed, *(effective_window(sealed, window, pending) for _, window, pending in holding)])
