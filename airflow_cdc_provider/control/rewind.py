"""A table taken back to an earlier state of its own, so that the change log brings it forward again.

Three commits: a fence that says where the data go back to, which shuts out every attempt under way; the data going
back; a fence with the cursor that counts there. Dies between them: whoever finds ``rewinding`` does the rest anew.
"""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.replicator import Replicator, utc_now
from airflow_cdc_provider.core.decisions.commands import Command
from airflow_cdc_provider.core.decisions.pause_resume import StateChange, TableStatus
from airflow_cdc_provider.core.decisions.rewinds import refusal, target_window
from airflow_cdc_provider.core.errors import Blocked, CommandRefused, Fenced, Problem
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import State, TableState, require_move
from airflow_cdc_provider.targets.target import TargetState


def rewind(replicator: Replicator, command: Command, standing: TableStatus, held: TargetState, by: str) -> StateChange:
    """Carry out a request for one table that has a control record. Raises Fenced where somebody moved the table
    meanwhile, TargetUnavailable where the target does not answer."""
    control = standing.control
    assert control is not None
    if control.state.command == command.id and control.state.name is TableState.REPLICATING:
        return StateChange(standing.table)
    if control.state.command != command.id:
        try:
            require_move(standing.table, control.state.name, TableState.REWINDING)
            _announce(replicator, command, standing, held, by)
        except CommandRefused as refused:
            return StateChange(standing.table, refusal=refused.problems[0])
    try:
        return StateChange(standing.table, finish(replicator, standing.table, standing.target, by).state)
    except Blocked as blocked:
        return StateChange(standing.table, refusal=blocked.problems[0])


def finish(replicator: Replicator, table: str, target_table: str, by: str) -> ControlRecord:
    """The rest of a rewind that was announced. Raises Blocked where the target cannot go back; then the table stands as
    it stood before. Raises Fenced where another process ends it."""
    failpoint("rewind.after_fence")
    held = replicator.target.state(table, target_table)
    announced = held.control
    assert announced is not None
    told = announced.state
    assert told.version is not None
    past = replicator.target.control_at(table, target_table, told.version)
    try:
        assert past is not None, "a version is announced only with its record"
        replicator.target.restore_version(target_table, held, told.version)
    except Blocked:
        state = State(TableState.REPLICATING, utc_now(), "the target could not be taken back", set_by=by)
        commit_fence(replicator, table, target_table, held, by, state)
        raise
    failpoint("rewind.after_cut")
    state = State(TableState.REPLICATING, utc_now(), told.reason, set_by=told.set_by, command=told.command)
    held = replicator.target.state(table, target_table)
    if held.control is None or held.control.nonce != announced.nonce:
        raise Fenced(Problem("FEN004", f"another process has ended the rewind of {table}", table, do="nothing"))
    back = replace(past, owner=announced.owner, fence=announced.fence)
    record = back.fenced(state, attempt=by, committed_at=utc_now())
    record = replicator.target.fence(target_table, held, record)
    detail = {"table": table, "fence": record.fence, "window": record.window, "from_window": announced.window}
    replicator.state.write_audit(replicator.name, by, "rewind", detail)
    return record


def _announce(replicator: Replicator, command: Command, standing: TableStatus, held: TargetState, by: str) -> None:
    """Raises CommandRefused, with nothing done, where the table cannot go back so far."""
    control, log = standing.control, replicator.log
    assert control is not None
    oldest = log.oldest()
    window = target_window(str(command.arguments["to"]), log.manifests(oldest))
    past = replicator.target.version_at_or_before(standing.table, standing.target, window)
    if problem := refusal(command, control, window, past.control if past else None, oldest):
        raise CommandRefused(problem)
    assert past is not None, "without a version to go back to it is refused"
    reason = str(command.arguments.get("reason") or f"rewind to window {window} by {command.requested_by}")
    remedy = "the next run ends it"
    state = State(
        TableState.REWINDING, utc_now(), reason, remedy, command.requested_by, command.id, version=past.version
    )
    commit_fence(replicator, standing.table, standing.target, held, by, state)
