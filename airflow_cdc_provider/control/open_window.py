"""The start of a run: leases, commands, the stream, the decision, and every part of it that needs no Spark.

Every step can be repeated after a crash. A stream is opened once, and its start position is sealed as an empty window,
so that a later loss of the stream is detected.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Collection
from dataclasses import replace
from functools import partial

from airflow_cdc_provider.control.answers import carry_out_answers
from airflow_cdc_provider.control.begun_drops import finish_begun_drops, with_unfinished
from airflow_cdc_provider.control.column_comments import write_due_comments
from airflow_cdc_provider.control.disclosed_columns import write_disclosed
from airflow_cdc_provider.control.drop_gone_copies import drop_gone_copies
from airflow_cdc_provider.control.fences import commit_fence, with_control
from airflow_cdc_provider.control.first_copies import first_window, pause_committed_copies
from airflow_cdc_provider.control.footprint import left_copies, left_note
from airflow_cdc_provider.control.immediate_commands import approve_deletes, carry_out
from airflow_cdc_provider.control.observe import Observation, RunContext, observe
from airflow_cdc_provider.control.replicator import LogInfo, Replicator
from airflow_cdc_provider.control.replicator_changes import register
from airflow_cdc_provider.control.rewind import finish_rewind, rewinding_tables
from airflow_cdc_provider.control.table_rows import opening_rows
from airflow_cdc_provider.core.decisions.backfills import outdated_backfill
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.facts import Facts
from airflow_cdc_provider.core.decisions.run_beside import RunBeside
from airflow_cdc_provider.core.decisions.run_decision import RunDecision, decide
from airflow_cdc_provider.core.decisions.run_plan import RunPlan
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.decisions.table_checks import FOREIGN
from airflow_cdc_provider.core.errors import UNREADABLE, Blocked, Fenced
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.change_log import EXPIRED, Hole, Manifest, TableSlice
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.spec.definition import whole_fingerprint
from airflow_cdc_provider.core.spec.selected_columns import withheld_note
from airflow_cdc_provider.core.table.state_rows import LEASE_S, Lane
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.core.times import utc_now


def open_window(replicator: Replicator, run: RunContext, log_info: LogInfo) -> RunDecision:
    """Decide the run and do everything that needs no Spark: pause, resume, open the stream, seal an empty window, fence
    restored tables, write comments of columns.

    Writes ``plan.json`` for later tasks to the run's folder. Does nothing else if the copies belong to another state
    store: their drops, commands and rewinds are of that one. Does nothing at all if a run with a later version of the
    YAML was opened before; a backfill is stopped then, since no later run does its work. Raises Blocked (CMD020
    to CMD023) if the replicator was deleted, renamed or moved."""
    name, state = replicator.name, replicator.state
    newest = register(state, replicator.definition, run.dag_version)
    replicator.run(run.run_id).delete_decision()  # close_window must not use that of an earlier opening
    if not newest:
        return _leave_to_newer(replicator, run)
    replicator.log.create(state.owner(), utc_now())
    run = replace(
        run,
        stream_lane=state.acquire(name, Lane.STREAM, run.run_id, LEASE_S),
        copy_lane=state.acquire(name, Lane.COPY, run.run_id, LEASE_S),
    )
    run = replace(run, beside=run_beside(replicator, run.run_id))
    failpoint("open.after_lanes")
    observation = observe(replicator, run)
    decision = decide(observation.facts)
    if decision.stop is not None and decision.stop.code == FOREIGN:
        return _start(replicator, run, decision, observation)
    drops = finish_begun_drops(replicator, observation, run.run_id, log_info)
    if drops:
        observation = with_unfinished(observe(replicator, run, use_index=False), drops)
    targets = {table.task.table: table.task.target for table in observation.facts.tables}
    fenced = carry_out(replicator, observation.facts.commands, targets, observation.states, run.run_id)
    fenced |= carry_out_answers(replicator, targets, observation.states, run.run_id, log_info)
    fenced |= pause_committed_copies(replicator, targets, observation.states, run.run_id, log_info)
    fenced |= _finish_rewinds(replicator, run.run_id, targets, observation, log_info)
    if fenced:
        observation = with_unfinished(observe(replicator, run, use_index=False), drops)
    write_disclosed(replicator, observation.disclosed)
    if limit := observation.facts.stream.limit:
        state.positions.update(name, end=dict(limit), end_at=observation.facts.at)
    decision = decide(observation.facts)
    if decision.reopen:
        reopen_stream(replicator, observation.facts, log_info)
        observation = with_unfinished(observe(replicator, run), drops)
        decision = decide(observation.facts)
    if run.copy_lane and decision.stop is None:
        decision = replace(decision, gone=drop_gone_copies(replicator, observation.facts, log_info))
    decision = _fence_restored(replicator, observation, decision, log_info)
    decision = _ask(replicator, observation, decision, log_info)
    if run.stream_lane and decision.stop is None:
        decision = write_due_comments(replicator, decision, log_info)
    if decision.holes:
        decision = _seal_holes(replicator, observation.facts, decision, log_info)
    if decision.idle is not None:
        decision = _seal_idle_window(replicator, observation.facts, decision, decision.idle)
    for new in decision.new:
        log_info(f"{new.table}: {new.reason}")
    for copy in left_copies(replicator):
        log_info(left_note(copy))
    for table in observation.facts.tables:
        if table.task.withheld:
            log_info(withheld_note(table.task.table, table.task.withheld))
    return _start(replicator, run, decision, observation)


def _start(replicator: Replicator, run: RunContext, decision: RunDecision, observation: Observation) -> RunDecision:
    definition = whole_fingerprint(replicator.definition)
    decision = replace(decision, plan=replace(decision.plan, opening=uuid.uuid4().hex, definition=definition))
    _claim_and_start(replicator, run, decision, observation.states)
    _write_decision(replicator, run.run_id, decision)
    return decision


def _leave_to_newer(replicator: Replicator, run: RunContext) -> RunDecision:
    plan = RunPlan(run.run_id, run.mode, replicator.log.identity() or "", replicator.state.owner(), 0, {}, ())
    note = "this run has an earlier version of the YAML than the last one, and does nothing: start a new run"
    stop = None if run.interval is None else outdated_backfill(replicator.name, run.run_id, run.interval)
    notes = () if stop else (note,)
    decision = RunDecision(replicator.name, plan, replicator.state.now(), notes=notes, stop=stop, outdated=True)
    _write_decision(replicator, run.run_id, decision)
    return decision


def _finish_rewinds(
    replicator: Replicator, run_id: str, targets: dict[str, str], observation: Observation, log_info: LogInfo
) -> bool:
    """Finish the rewinds that an earlier process began. Returns whether there was any."""
    rewinding = rewinding_tables(observation.states, observation.facts.owner)
    for table in rewinding:
        with contextlib.suppress(Fenced):  # another process finishes it
            try:
                finish_rewind(replicator, table, targets[table], run_id)
            except (Blocked, *UNREADABLE) as error:
                log_info(f"{table}: {error}")
    return bool(rewinding)


def read_decision(replicator: Replicator, run_id: str) -> RunDecision | None:
    """None if the run ended before its decision."""
    decision = replicator.run(run_id).decision()
    return None if decision is None else from_plain(RunDecision, decision)


def run_beside(replicator: Replicator, run_id: str) -> RunBeside | None:
    """The other run that holds the stream lane. Read before the log: a window that the run seals while it decides is
    in the log once its decision is there."""
    holder = replicator.state.holder(replicator.name, Lane.STREAM)
    if holder is None or holder == run_id:
        return None
    decision = read_decision(replicator, holder)
    if decision is None:
        return RunBeside(holder, None)
    plan = decision.plan
    ended = replicator.run(holder).latest(plan.sealing_task, plan.opening) if plan.sealing_task else None
    return RunBeside(holder, plan, has_sealed=ended is not None and ended[1].problem is None)


def reopen_stream(replicator: Replicator, facts: Facts, log_info: LogInfo) -> None:
    """Open the stream at the source's current position, in a new epoch: positions of two streams cannot be compared.
    If a stream is replaced, the window between the two has a hole for every table, which only a new copy repairs."""
    tables = dict.fromkeys(table.task.source_table for table in facts.tables)
    names = list(dict.fromkeys(table.task.name_in_source for table in facts.tables if table.refused is None))
    controls = [table.task.control for table in facts.tables if table.task.control]
    epoch = max([facts.log.epoch, *(control.epoch for control in controls)]) + 1
    if facts.log.sealed == 0:
        start = _open_stream(replicator, names)
        _seal_empty_window(replicator, facts, start, start, epoch)
        log_info(f"opened the stream at {start}")
        return
    replicator.source.drop_stream()
    failpoint("stream.dropped")
    start = _open_stream(replicator, names)
    why = facts.stream.lost.what if facts.stream.lost else "the source is a different system"
    holes = tuple(Hole(EXPIRED, table, "", detail=why) for table in tables)
    _seal_empty_window(replicator, facts, dict(facts.log.hi), start, epoch, holes)
    replicator.state.write_audit(replicator.name, facts.run_id, "reopen", {"why": why, "from": start})
    log_info(f"reopened the stream at {start}: {why}")


def _open_stream(replicator: Replicator, tables: list[str]) -> dict[str, str]:
    failpoint("stream.before")
    start = dict(replicator.source.open_stream(tables))
    failpoint("stream.after")
    return start


def _seal_empty_window(
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
            tables={
                t.task.source_table: TableSlice(t.task.definition_sha256, log_sha256=t.task.log_sha256)
                for t in facts.tables
            },
            holes=holes,
        )
    )


def _seal_idle_window(replicator: Replicator, facts: Facts, decision: RunDecision, idle: Position) -> RunDecision:
    """The source moved on without changes of our tables. After an empty window the source can discard its log."""
    sealed = _seal_empty_window(replicator, facts, dict(facts.log.hi), idle, facts.log.epoch)
    return replace(decision, plan=replace(decision.plan, sealed=sealed.window, lo=dict(sealed.hi)))


def _seal_holes(replicator: Replicator, facts: Facts, decision: RunDecision, log_info: LogInfo) -> RunDecision:
    """They stay when the log of the source has the changes of their tables again."""
    at = dict(facts.log.hi)
    sealed = _seal_empty_window(replicator, facts, at, at, facts.log.epoch, decision.holes)
    for hole in decision.holes:
        log_info(f"{hole.table}: changes are in no log ({hole.detail})")
    return replace(decision, plan=replace(decision.plan, sealed=sealed.window, lo=dict(sealed.hi)))


def _fence_restored(
    replicator: Replicator, observation: Observation, decision: RunDecision, log_info: LogInfo
) -> RunDecision:
    """Raise the fence of tables that were restored to an earlier version outside this project: the recorded token stays
    high there, and the log can be applied again only under a higher one. Skips a table that a newer process owns."""
    plan, run_id = decision.plan, decision.plan.run_id
    tasks: dict[str, TableTask] = {task.table: task for task in plan.tables}
    skipped = []
    for table in decision.raise_fence:
        task = tasks[table]
        try:
            record = commit_fence(replicator, table, task.target, observation.states[table], run_id)
        except Fenced as error:
            log_info(str(error))
            skipped.append(table)
            continue
        tasks[table] = with_control(task, record)
        log_info(f"{table} was restored to window {record.window}; the change log is applied again from there")
    stream = tuple(table for table in plan.stream if table not in skipped)
    return replace(decision, plan=replace(plan, tables=tuple(tasks.values()), stream=stream))


def _ask(replicator: Replicator, observation: Observation, decision: RunDecision, log_info: LogInfo) -> RunDecision:
    """Commit the questions that this decision asks to the states of their tables."""
    tasks = {task.table: task for task in decision.plan.tables}
    for verdict in decision.table_decisions:
        if verdict.question is None or verdict.problem is None or verdict.table not in observation.states:
            continue
        task, problem = tasks[verdict.table], verdict.problem
        state = State(TableState.BLOCKED, utc_now(), problem.what, problem.do, question=verdict.question)
        current = observation.states[verdict.table]
        try:
            record = commit_fence(replicator, verdict.table, task.target, current, decision.plan.run_id, state)
        except Fenced as error:
            log_info(str(error))
            continue
        tasks[verdict.table] = with_control(task, record)
    return replace(decision, plan=replace(decision.plan, tables=tuple(tasks.values())))


def _claim_and_start(replicator: Replicator, run: RunContext, decision: RunDecision, read: Collection[str]) -> None:
    """Claim the tables to copy, release the lanes that the run does not need, and mark its commands as started."""
    name, state, plan = replicator.name, replicator.state, decision.plan
    if run.copy_lane:
        for claim in state.claims(name):
            if claim.run_id != run.run_id:
                state.release_claim(name, claim.table, claim.run_id)
        for table in plan.copy:
            state.claim(name, table, run.run_id, first_window(replicator, table, plan.sealed))
            failpoint("claim.after")
        if not decision.needs_copy_lane:
            state.release(name, Lane.COPY, run.run_id)
    if run.stream_lane and not decision.needs_stream_lane:
        state.release(name, Lane.STREAM, run.run_id)
    for command_id in plan.commands:
        state.start(command_id, run.run_id)
        _approve_deletes(replicator, command_id, decision)
    state.change_tables(name, partial(opening_rows, decision, read))


def _approve_deletes(replicator: Replicator, command_id: str, decision: RunDecision) -> None:
    """Write the operator's approval of deletes to staging before any step acts on it."""
    command = replicator.state.command(command_id)
    if command is None or command.kind is not CommandKind.RESYNC or not command.arguments.get("approve_deletes"):
        return
    for verdict in decision.table_decisions:
        if verdict.command == command_id:
            approve_deletes(replicator, command, verdict.table)


def _write_decision(replicator: Replicator, run_id: str, decision: RunDecision) -> None:
    files = replicator.new_run(run_id)
    failpoint("plan.before")
    files.write_plan(decision.plan)
    failpoint("plan.after")
    files.write_decision(to_plain(decision))
