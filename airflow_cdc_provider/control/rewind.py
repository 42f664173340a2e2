"""Rewinds a table to an earlier version of its own, so that the change log is applied again from there.

Three commits: a fence with the state ``rewinding`` and the version to restore, which rejects every running attempt; the
restore of the data; a fence with the cursor of that version. After a crash, the next process that reads the state
``rewinding`` repeats the remaining commits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.commands import Command
from airflow_cdc_provider.core.decisions.pause_resume import StateChange, TableStatus
from airflow_cdc_provider.core.decisions.rewinds import refusal, target_window
from airflow_cdc_provider.core.errors import Blocked, CommandRefused, Fenced
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import State, TableState, require_move
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.targets.target import TargetState


def rewind(
    replicator: Replicator, command: Command, status: TableStatus, current: TargetState, actor: str
) -> StateChange:
    """Carry out the command for one table that has a control record. Raises Fenced if the table has a newer commit,
    TargetUnavailable if the target does not answer."""
    control = status.control
    assert control is not None
    if control.state.command == command.id and control.state.name is TableState.REPLICATING:
        return StateChange(status.table)
    if control.state.command != command.id:
        try:
            require_move(status.table, control.state.name, TableState.REWINDING)
            _commit_rewinding(replicator, command, status, current, actor)
        except CommandRefused as refused:
            return StateChange(status.table, refusal=refused.problems[0])
    try:
        return StateChange(status.table, finish_rewind(replicator, status.table, status.target, actor).state)
    except Blocked as blocked:
        return StateChange(status.table, refusal=blocked.problems[0])


def finish_rewind(replicator: Replicator, table: str, target_table: str, actor: str) -> ControlRecord:
    """Finish a rewind whose state ``rewinding`` is committed. Raises Blocked if the target cannot restore the version;
    the table is then replicating as before. Raises Fenced if another process has finished the rewind."""
    failpoint("rewind.after_fence")
    target = replicator.targets.of(table)
    current = target.state(table, target_table)
    rewinding = current.control
    assert rewinding is not None
    version = rewinding.state.version
    assert version is not None
    past_control = target.control_at(table, target_table, version)
    try:
        assert past_control is not None, "a version is named only with its control record"
        target.restore_version(target_table, current, version)
    except Blocked:
        state = State(TableState.REPLICATING, utc_now(), "the target could not be restored", set_by=actor)
        commit_fence(replicator, table, target_table, current, actor, state)
        raise
    failpoint("rewind.after_cut")
    begun = rewinding.state
    state = State(TableState.REPLICATING, utc_now(), begun.reason, set_by=begun.set_by, command=begun.command)
    current = target.state(table, target_table)
    if current.control is None or current.control.nonce != rewinding.nonce:
        raise Fenced.of(
            "FEN004",
            f"another process has finished the rewind of {table}",
            table,
            do="nothing: the rewind is complete",
        )
    restored = replace(past_control, owner=rewinding.owner, fence=rewinding.fence, resyncs=rewinding.resyncs)
    record = restored.fenced(state, attempt=actor, committed_at=utc_now())
    record = target.fence(target_table, current, record)
    detail = {"table": table, "fence": record.fence, "window": record.window, "from_window": rewinding.window}
    replicator.state.write_audit(replicator.name, actor, "rewind", detail)
    return record


def _commit_rewinding(
    replicator: Replicator, command: Command, status: TableStatus, current: TargetState, actor: str
) -> None:
    """Raises CommandRefused before any change if the table cannot be restored that far back."""
    control, log = status.control, replicator.log
    assert control is not None
    oldest = log.oldest()
    window = target_window(str(command.arguments["to"]), log.manifests(oldest))
    past = replicator.targets.of(status.table).version_at_or_before(status.table, status.target, window)
    if problem := refusal(command, control, window, past.control if past else None, oldest):
        raise CommandRefused(problem)
    assert past is not None, "refused above without a version"
    reason = str(command.arguments.get("reason") or f"rewind to window {window} by {command.requested_by}")
    remedy = "the next run finishes it"
    state = State(
        TableState.REWINDING, utc_now(), reason, remedy, command.requested_by, command.id, version=past.version
    )
    commit_fence(replicator, status.table, status.target, current, actor, state)


def rewinding_tables(states: Mapping[str, TargetState], owner: str) -> list[str]:
    """Those whose rewind an earlier process began."""
    controls = ((table, current.control) for table, current in states.items())
    return [
        table
        for table, control in controls
        if control and control.state.name is TableState.REWINDING and control.owner == owner
    ]
