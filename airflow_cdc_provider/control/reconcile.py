"""Around a new copy of a table: find the tables that need one, take them out of the stream, put them back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.open_window import read_decision
from airflow_cdc_provider.control.replicator import LogInfo, Replicator
from airflow_cdc_provider.control.table_rows import current_row
from airflow_cdc_provider.core.decisions.holes import hole_for, hole_of
from airflow_cdc_provider.core.decisions.run_plan import RunPlan
from airflow_cdc_provider.core.decisions.steps import Outcome, TableTask
from airflow_cdc_provider.core.decisions.table_decisions import TableDecision
from airflow_cdc_provider.core.errors import Fenced, ForeignTarget
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.change_log import REQUESTED
from airflow_cdc_provider.core.spec.definition import repairs_itself
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.state_rows import LEASE_S, Lane, TableRow
from airflow_cdc_provider.core.table.states import State, TableState, replicating_again
from airflow_cdc_provider.core.times import utc_now

RESYNC = "reconcile.resync"


def find_holes(replicator: Replicator, run_id: str, log_info: LogInfo) -> tuple[str, ...]:
    """Tables with a hole in the windows that this run extracted, if the definition allows an automatic new copy. Writes
    them to ``holes.json``, and releases the stream lane: the rest of the run does not need it, and a long copy must not
    delay the next run."""
    run = replicator.run(run_id)
    plan = run.plan()
    holes: dict[str, str] = {}
    requested = set()
    for manifest in replicator.log.manifests(plan.sealed + 1):
        for task in plan.named(plan.stream):
            hole = hole_for(manifest, task.control) if task.control else hole_of(manifest, task.table, "")
            if hole:
                holes[task.table] = f"{hole.cause} in window {manifest.window}"
                requested |= {task.table} if hole.kind in REQUESTED else set()
    for table, hole_text in holes.items():
        log_info(f"{table}: {hole_text}")
    auto = {task.table for task in plan.tables if repairs_itself(replicator.definition, task.rule)}
    tables = tuple(table for table in holes if table not in plan.reconcile and table in auto | requested)
    run.write_holes(plan.opening, tables)
    failpoint("holes.after")
    replicator.state.release(replicator.name, Lane.STREAM, run_id)
    return tables


def tables_to_reconcile(replicator: Replicator, run_id: str) -> tuple[RunPlan, tuple[TableTask, ...]]:
    """The run plan, and the tables to copy again: those of the plan and those in which ``find_holes`` found a hole."""
    run = replicator.run(run_id)
    plan = run.plan()
    return plan, plan.named((*plan.reconcile, *run.holes(plan.opening)))


def pause_stream(replicator: Replicator, run_id: str, log_info: LogInfo) -> tuple[str, ...]:
    """Take the copy lane and put each table into ``resyncing``, in which it accepts no commit of the stream. A table
    that was paused meanwhile stays paused, and a rewind that has begun meanwhile gives way only to a copy that an
    operator has requested. Returns the tables that may be copied. Raises Fenced (LSE001) if another run
    holds the lane.

    May be repeated: a table that is in this state by the same command stays as it is.
    """
    name, state = replicator.name, replicator.state
    if not state.acquire(name, Lane.COPY, run_id, LEASE_S):
        raise Fenced.of(
            "LSE001",
            f"another run holds the copy lane of {name}",
            where=f"run {run_id}",
            found=f"run {state.holder(name, Lane.COPY)}",
            data="a later run copies the tables again",
        )
    plan, tasks = tables_to_reconcile(replicator, run_id)
    verdicts = _verdicts(replicator, run_id)
    paused = []
    for task in tasks:
        current = replicator.targets.state(task.table, task.target)
        if current.control is None or not state.claim(name, task.table, run_id, replicator.log.sealed()):
            log_info(f"{task.table} is skipped: another run copies it, or its target table does not exist")
            continue
        if current.control.state.name is TableState.PAUSED:
            state.release_claim(name, task.table, run_id)
            log_info(f"{task.table} is skipped: it is paused since the decision; it is copied after its resume")
            continue
        verdict = verdicts.get(task.table)
        command = verdict.command if verdict else ""
        if current.control.state.name is TableState.REWINDING and not command:
            state.release_claim(name, task.table, run_id)
            log_info(f"{task.table} is skipped: its rewind is not finished; the next run finishes it")
            continue
        current_state = current.control.state
        if current_state.name is TableState.RESYNCING and current_state.command == command:
            paused.append(task.table)
            continue
        reason = plan.reasons.get(task.table) or "a hole in the change log"
        resyncing = State(TableState.RESYNCING, utc_now(), reason, set_by=run_id, command=command)
        try:
            record = commit_fence(replicator, task.table, task.target, current, run_id, resyncing)
        except ForeignTarget as error:
            state.release_claim(name, task.table, run_id)
            log_info(f"{task.table} is skipped: {error}")
            continue
        failpoint("resync.fenced")
        state.change_tables(name, partial(_current_rows, task, record, state.now()))
        log_info(f"{task.table} is resyncing under fencing token {record.fence}: {reason}")
        paused.append(task.table)
    return tuple(paused)


def _current_rows(task: TableTask, record: ControlRecord, at: str, before: Mapping[str, TableRow]) -> list[TableRow]:
    return [current_row(task.table, task.target, record, before.get(task.table), at)]


def resume_stream(replicator: Replicator, run_id: str, log_info: LogInfo) -> tuple[str, ...]:
    """Put each table whose new copy is committed back into the stream. The others stay ``resyncing`` for the next
    run."""
    plan, tasks = tables_to_reconcile(replicator, run_id)
    latest = replicator.run(run_id).latest(RESYNC, plan.opening)
    copied = {r.table: r for r in latest[1].tables if r.outcome is Outcome.DONE} if latest else {}
    resumed = []
    for task in tasks:
        current = replicator.targets.state(task.table, task.target)
        control = current.control
        if task.table in copied and control is not None and control.state.name is TableState.REPLICATING:
            replicator.state.release_claim(replicator.name, task.table, run_id)  # the audit of its keys has resumed it
            continue
        if task.table not in copied or control is None or control.state.name is not TableState.RESYNCING:
            log_info(f"{task.table} is unchanged: {control.state.name if control else 'no target table'}")
            continue
        fence = copied[task.table].fence
        if fence is not None and control.fence < fence:
            log_info(f"{task.table} is skipped: the target does not have the copy of this run")
            continue
        failpoint("resume.before")
        state = replicating_again(control.state, utc_now())
        try:
            commit_fence(replicator, task.table, task.target, current, run_id, state)
        except ForeignTarget as error:
            replicator.state.release_claim(replicator.name, task.table, run_id)
            log_info(f"{task.table} is skipped: {error}")
            continue
        failpoint("resume.after")
        replicator.state.release_claim(replicator.name, task.table, run_id)
        resumed.append(task.table)
    return tuple(resumed)


def _verdicts(replicator: Replicator, run_id: str) -> Mapping[str, TableDecision]:
    decision = read_decision(replicator, run_id)
    return {verdict.table: verdict for verdict in decision.table_decisions} if decision else {}
