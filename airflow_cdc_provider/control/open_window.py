"""The beginning of a run: lanes, requests, the stream, the decision, and what of it needs no Spark.

Dies anywhere: everything here may be done twice. A stream is opened once and its place sealed as an empty window, so
that no later loss of it can go unseen.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime
from functools import partial

from airflow_cdc_provider.control.fences import commit_fence, with_control
from airflow_cdc_provider.control.observe import Observation, RunContext, observe
from airflow_cdc_provider.control.replicator import Replicator, utc_now
from airflow_cdc_provider.control.requests import approve, carry_out
from airflow_cdc_provider.control.rewind import finish
from airflow_cdc_provider.control.table_rows import opening_rows
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.facts import Facts
from airflow_cdc_provider.core.decisions.run_decision import RunDecision, decide
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Blocked, Fenced, Retryable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.change_log import EXPIRED, Hole, Manifest, TableSlice, run_plan_path
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.state_rows import LEASE_S, Lane
from airflow_cdc_provider.core.table.states import TableState

Log = Callable[[str], None]


def open_window(replicator: Replicator, run: RunContext, tell: Log) -> RunDecision:
    """Decide a run and do at once what needs no Spark: pause, resume, open the stream, seal an empty window, fence what
    was restored. Later tasks find ``plan.json`` in the run's folder."""
    name, state = replicator.name, replicator.state
    forget(replicator, run.run_id)
    replicator.log.create(state.owner(), utc_now())
    run = replace(
        run,
        stream_lane=state.acquire(name, Lane.STREAM, run.run_id, LEASE_S),
        copy_lane=state.acquire(name, Lane.COPY, run.run_id, LEASE_S),
    )
    failpoint("open.after_lanes")
    gathered = observe(replicator, run)
    targets = {table.task.table: table.task.target for table in gathered.facts.tables}
    moved = carry_out(replicator, gathered.facts.commands, targets, gathered.states, run.run_id)
    moved |= _finish_rewinds(replicator, run.run_id, targets, gathered, tell)
    if moved:
        gathered = observe(replicator, run, believe_index=False)
    decision = decide(gathered.facts)
    if decision.reopen:
        reopen(replicator, gathered.facts, tell)
        gathered = observe(replicator, run)
        decision = decide(gathered.facts)
    decision = _fence_restored(replicator, gathered, decision, tell)
    if decision.idle is not None:
        decision = _seal_idle(replicator, gathered.facts, decision, decision.idle)
    _take_on(replicator, run, decision, gathered.states)
    _remember(replicator, run.run_id, decision)
    return decision


def _finish_rewinds(
    replicator: Replicator, run_id: str, targets: dict[str, str], gathered: Observation, tell: Log
) -> bool:
    """What an earlier process announced and did not end. Says whether there was any."""
    left = [
        table
        for table, held in gathered.states.items()
        if held.control is not None
        and held.control.state.name is TableState.REWINDING
        and held.control.owner == gathered.facts.owner
    ]
    for table in left:
        with contextlib.suppress(Fenced):  # another process ends it
            try:
                finish(replicator, table, targets[table], run_id)
            except (Blocked, Retryable) as error:
                tell(f"{table}: {error}")
    return bool(left)


def forget(replicator: Replicator, run_id: str) -> None:
    """A run that is opened again must not be closed by its earlier decision."""
    replicator.log.store.delete(_decision_path(run_id))


def decision_of(replicator: Replicator, run_id: str) -> RunDecision | None:
    """What the run decided; None where it did not come so far."""
    path = _decision_path(run_id)
    if not replicator.log.store.exists(path):
        return None
    return from_plain(RunDecision, json.loads(replicator.log.store.read(path)))


def decided_at(replicator: Replicator, run_id: str) -> datetime | None:
    path = _decision_path(run_id)
    if not replicator.log.store.exists(path):
        return None
    return datetime.fromisoformat(json.loads(replicator.log.store.read(path))["at"])


def reopen(replicator: Replicator, facts: Facts, tell: Log) -> None:
    """Open the stream at the source's present place. Where an earlier one is given up, the window that bridges the two
    has a hole for every table: none can step over it without a new copy. That stands in a new epoch: places of two
    streams say nothing about each other, be they of one source or not."""
    tables = [table.task.table for table in facts.tables]
    controls = [table.task.control for table in facts.tables if table.task.control]
    epoch = max([facts.log.epoch, *(control.epoch for control in controls)]) + 1
    if facts.log.sealed == 0:
        start = _opened(replicator, tables)
        _seal_empty(replicator, facts, start, start, epoch)
        tell(f"the stream is open, it starts at {start}")
        return
    replicator.source.drop_stream()
    failpoint("stream.dropped")
    start = _opened(replicator, tables)
    why = facts.stream.lost.what if facts.stream.lost else "the source is another one"
    holes = tuple(Hole(EXPIRED, table, "", detail=why) for table in tables)
    _seal_empty(replicator, facts, dict(facts.log.hi), start, epoch, holes)
    replicator.state.write_audit(replicator.name, facts.run_id, "reopen", {"why": why, "from": start})
    tell(f"the stream is open again, it starts at {start}: {why}")


def _opened(replicator: Replicator, tables: list[str]) -> dict[str, str]:
    failpoint("stream.before")
    start = dict(replicator.source.open_stream(tables))
    failpoint("stream.after")
    return start


def _seal_empty(
    replicator: Replicator, facts: Facts, lo: Position, hi: Position, epoch: int, holes: tuple[Hole, ...] = ()
) -> Manifest:
    log, sealed = replicator.log, facts.log.sealed
    return log.seal(
        Manifest(
            log_id=facts.log.log_id,
            window=sealed + 1,
            epoch=epoch,
            lo=dict(lo),
            hi=dict(hi),
            previous_sha256=log.manifest_sha256(sealed),
            attempt=f"open-{facts.run_id}",
            sealed_at=utc_now(),
            tables={t.task.table: TableSlice(t.task.definition_sha256) for t in facts.tables},
            holes=holes,
        )
    )


def _seal_idle(replicator: Replicator, facts: Facts, decision: RunDecision, idle: Position) -> RunDecision:
    """The source moved on without changes of ours: an empty window lets it forget what it kept for us."""
    sealed = _seal_empty(replicator, facts, dict(facts.log.hi), idle, facts.log.epoch)
    return replace(decision, plan=replace(decision.plan, sealed=sealed.window, lo=dict(sealed.hi)))


def _fence_restored(replicator: Replicator, gathered: Observation, decision: RunDecision, tell: Log) -> RunDecision:
    """Somebody took these tables back to an earlier version: the recorded number stays high there, so only a higher
    fence lets the log be applied again. Raises nothing where somebody newer was faster: the table is left to them."""
    plan, run_id = decision.plan, decision.plan.run_id
    tasks: dict[str, TableTask] = {task.table: task for task in plan.tables}
    left = []
    for table in decision.raise_fence:
        task = tasks[table]
        try:
            record = commit_fence(replicator, table, task.target, gathered.states[table], run_id)
        except Fenced as error:
            tell(str(error))
            left.append(table)
            continue
        tasks[table] = with_control(task, record)
        tell(f"{table} was taken back to window {record.window} by somebody; the log is applied again from there")
    stream = tuple(table for table in plan.stream if table not in left)
    return replace(decision, plan=replace(plan, tables=tuple(tasks.values()), stream=stream))


def _take_on(replicator: Replicator, run: RunContext, decision: RunDecision, read: Collection[str]) -> None:
    """Claims for what is copied, requests started, lanes that are not needed given back."""
    name, state, plan = replicator.name, replicator.state, decision.plan
    if run.copy_lane:
        for claim in state.claims(name):
            if claim.run_id != run.run_id:
                state.release_claim(name, claim.table, claim.run_id)
        for table in plan.copy:
            state.claim(name, table, run.run_id, plan.sealed)
            failpoint("claim.after")
        if not decision.needs_copy_lane:
            state.release(name, Lane.COPY, run.run_id)
    if run.stream_lane and not decision.needs_stream_lane:
        state.release(name, Lane.STREAM, run.run_id)
    for command_id in plan.commands:
        state.start(command_id, run.run_id)
        _approve(replicator, command_id, decision)
    state.change_tables(name, partial(opening_rows, decision, replicator.definition.tables, read))


def _approve(replicator: Replicator, command_id: str, decision: RunDecision) -> None:
    """An operator's yes to deletions stands in staging before anything acts on it."""
    command = replicator.state.command(command_id)
    if command is None or command.kind is not CommandKind.RESYNC or not command.arguments.get("approve_deletes"):
        return
    for verdict in decision.table_decisions:
        if verdict.command == command_id:
            approve(replicator, command, verdict.table)


def _remember(replicator: Replicator, run_id: str, decision: RunDecision) -> None:
    failpoint("plan.before")
    replicator.run(run_id).write_plan(decision.plan)
    failpoint("plan.after")
    replicator.log.store.write(_decision_path(run_id), json.dumps(to_plain(decision), ensure_ascii=False).encode())


def _decision_path(run_id: str) -> str:
    return run_plan_path(run_id).replace("plan.json", "decision.json")
