"""Before and after a table is copied again: who needs it, the state that keeps the stream away, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.open_window import decision_of
from airflow_cdc_provider.control.replicator import Replicator, utc_now
from airflow_cdc_provider.control.table_rows import current_row
from airflow_cdc_provider.core.decisions.run_plan import RunPlan
from airflow_cdc_provider.core.decisions.steps import Outcome, TableTask
from airflow_cdc_provider.core.decisions.table_decisions import TableDecision, hole_of
from airflow_cdc_provider.core.errors import Fenced, Problem
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.change_log import REQUESTED
from airflow_cdc_provider.core.spec.definition import Reconcile
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.state_rows import LEASE_S, Lane, TableRow
from airflow_cdc_provider.core.table.states import State, TableState

RESYNC = "reconcile.resync"

Tell = Callable[[str], None]


def find_holes(replicator: Replicator, run_id: str, tell: Tell) -> tuple[str, ...]:
    """Tables that met a hole in the windows this run landed, where the definition lets them be copied again by
    themselves; written to ``holes.json``. The stream lane is given back: what is left of the run does not need it, and
    a long copy must not keep the next run from it."""
    run = replicator.run(run_id)
    plan = run.plan()
    holes: dict[str, str] = {}
    asked_for = set()
    for manifest in replicator.log.manifests(plan.sealed + 1):
        for task in plan.named(plan.stream):
            hole = hole_of(manifest, task.table, task.control.floor if task.control else "")
            if hole and hole.kind != "schema":
                holes[task.table] = f"{hole.kind} in window {manifest.window}"
                asked_for |= {task.table} if hole.kind in REQUESTED else set()
    for table, what in holes.items():
        tell(f"{table}: {what}")
    auto = replicator.definition.source.reconcile is Reconcile.AUTO
    found = tuple(table for table in holes if table not in plan.reconcile and (auto or table in asked_for))
    run.write_holes(found)
    failpoint("holes.after")
    replicator.state.release(replicator.name, Lane.STREAM, run_id)
    return found


def to_reconcile(replicator: Replicator, run_id: str) -> tuple[RunPlan, tuple[TableTask, ...]]:
    """The tables this run copies again: planned at its beginning, or met on the way."""
    run = replicator.run(run_id)
    plan = run.plan()
    return plan, plan.named((*plan.reconcile, *run.holes()))


def pause_stream(replicator: Replicator, run_id: str, tell: Tell) -> tuple[str, ...]:
    """Take the copy lane and put each table into ``resyncing``: from here on it takes no commit of the stream. Returns
    the tables that may be copied. Raises Fenced (LSE001) where another run holds the lane.

    Done twice, a table that is in the state already by this request is left as it is.
    """
    name, state = replicator.name, replicator.state
    if not state.acquire(name, Lane.COPY, run_id, LEASE_S):
        raise Fenced(
            Problem(
                "LSE001",
                f"another run holds the copy lane of {name}",
                where=f"run {run_id}",
                found=f"run {state.holder(name, Lane.COPY)}",
                data="the tables are copied again in a later run",
            )
        )
    plan, tasks = to_reconcile(replicator, run_id)
    verdicts = _verdicts(replicator, run_id)
    paused = []
    for task in tasks:
        held = replicator.target.state(task.table, task.target)
        if held.control is None or not state.claim(name, task.table, run_id, replicator.log.sealed()):
            tell(f"{task.table} is left out: another run copies it, or its target table is gone")
            continue
        verdict = verdicts.get(task.table)
        command = verdict.command if verdict else ""
        now = held.control.state
        if now.name is TableState.RESYNCING and now.command == command:
            paused.append(task.table)
            continue
        reason = plan.reasons.get(task.table) or "a hole in the change log"
        record = commit_fence(
            replicator,
            task.table,
            task.target,
            held,
            run_id,
            State(TableState.RESYNCING, utc_now(), reason, set_by=run_id, command=command),
            owner=plan.owner,
        )
        failpoint("resync.fenced")
        state.change_tables(name, partial(_held_rows, task, record))
        tell(f"{task.table} is resyncing under fence {record.fence}: {reason}")
        paused.append(task.table)
    return tuple(paused)


def _held_rows(task: TableTask, record: ControlRecord, before: Mapping[str, TableRow]) -> list[TableRow]:
    return [current_row(task.table, task.target, record, before.get(task.table), utc_now())]


def resume_stream(replicator: Replicator, run_id: str, tell: Tell) -> tuple[str, ...]:
    """Let the stream back to each table whose new copy is in. The others stay ``resyncing`` for the next run."""
    _, tasks = to_reconcile(replicator, run_id)
    latest = replicator.run(run_id).latest(RESYNC)
    copied = {r.table: r for r in latest[1].tables if r.outcome is Outcome.DONE} if latest else {}
    resumed = []
    for task in tasks:
        held = replicator.target.state(task.table, task.target)
        control = held.control
        if task.table not in copied or control is None or control.state.name is not TableState.RESYNCING:
            tell(f"{task.table} stays as it is: {control.state.name if control else 'no table'}")
            continue
        fence = copied[task.table].fence
        if fence is not None and control.fence < fence:
            tell(f"{task.table} does not hold the copy of this run")
            continue
        state = replace(control.state, name=TableState.REPLICATING, since=utc_now(), reason="", remedy="")
        failpoint("resume.before")
        commit_fence(replicator, task.table, task.target, held, run_id, state)
        failpoint("resume.after")
        replicator.state.release_claim(replicator.name, task.table, run_id)
        resumed.append(task.table)
    return tuple(resumed)


def _verdicts(replicator: Replicator, run_id: str) -> Mapping[str, TableDecision]:
    decision = decision_of(replicator, run_id)
    return {verdict.table: verdict for verdict in decision.table_decisions} if decision else {}
