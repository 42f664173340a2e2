"""Rewinds a table to an earlier version of its own, so that the change log is applied again from there.

Three commits: a fence with the state ``rewinding`` and the version to restore, which rejects every running attempt; the
restore of the data; a fence with the cursor of that version. After a crash, the next process that reads the state
``rewinding`` repeats the remaining commits. If the version is not there any more then, it is unknown whether the rows
are those of the cursor: the table stays ``rewinding``, without a version, until it is copied again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.commands import Command
from airflow_cdc_provider.core.decisions.pause_resume import StateChange, TableStatus, being_dropped
from airflow_cdc_provider.core.decisions.rewinds import reached_window, refusal, target_window
from airflow_cdc_provider.core.errors import Blocked, CommandRefused, Fenced
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.source_names import in_shell
from airflow_cdc_provider.core.table.states import State, TableState, drops_copy, require_move
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.targets.target import TargetState


def rewind(
    replicator: Replicator, command: Command, status: TableStatus, current: TargetState, actor: str
) -> StateChange:
    """Carry out the command for one table that has a control record. Raises Fenced if the table has a newer commit,
    TargetUnavailable if the target does not answer."""
    control = status.control
    assert control is not None
    if drops_copy(control.state):
        return StateChange(status.table, refusal=being_dropped(command, status.table))
    if control.state.command == command.id and control.state.name is TableState.REPLICATING:
        return StateChange(status.table)
    former = None
    if control.state.command != command.id:
        try:
            require_move(status.table, control.state.name, TableState.REWINDING)
            _commit_rewinding(replicator, command, status, current, actor)
        except CommandRefused as refused:
            return StateChange(status.table, refusal=refused.problems[0])
        former = None if control.state.name is TableState.REWINDING else control.state
    try:
        record = finish_rewind(replicator, status.table, status.target, actor, former)
        return StateChange(status.table, record.state)
    except Blocked as blocked:
        return StateChange(status.table, refusal=blocked.problems[0])


def finish_rewind(
    replicator: Replicator, table: str, target_table: str, actor: str, former: State | None = None
) -> ControlRecord:
    """Finish a rewind whose state ``rewinding`` is committed. Raises Fenced if another process has finished it, Blocked
    if the target cannot restore the version. ``former``: the state before, if this process began the rewind, so that no
    other one has restored the rows: the table has that state again then. Else it waits for a new copy."""
    failpoint("rewind.after_fence")
    target = replicator.targets.of(table)
    current = target.state(table, target_table)
    rewinding = current.control
    if rewinding is None or rewinding.state.name is not TableState.REWINDING:
        raise _finished(table)
    version = rewinding.state.version
    if version is None:
        raise _version_gone(replicator, table)
    past_control = target.control_at(table, target_table, version)
    try:
        if past_control is None:
            raise _version_gone(replicator, table)
        target.restore_version(target_table, current, version)
    except Blocked as error:
        reason, remedy = error.problems[0].what, _resync(replicator, table)
        unknown = replace(rewinding.state, version=None, reason=reason, remedy=remedy)
        commit_fence(replicator, table, target_table, current, actor, former or unknown)
        raise
    failpoint("rewind.after_cut")
    begun = rewinding.state
    state = State(TableState.REPLICATING, utc_now(), begun.reason, set_by=begun.set_by, command=begun.command)
    current = target.state(table, target_table)
    if current.control is None or current.control.nonce != rewinding.nonce:
        raise _finished(table)
    restored = replace(past_control, owner=rewinding.owner, fence=rewinding.fence, resyncs=rewinding.resyncs)
    record = restored.fenced(state, attempt=actor, committed_at=utc_now())
    record = target.fence(target_table, current, record)
    detail = {"table": table, "fence": record.fence, "window": record.window, "from_window": rewinding.window}
    replicator.state.write_audit(replicator.name, actor, "rewind", detail)
    return record


def _finished(table: str) -> Fenced:
    return Fenced.of(
        "FEN004",
        f"another process has finished the rewind of {table}",
        table,
        do="nothing: the rewind is complete",
    )


def _version_gone(replicator: Replicator, table: str) -> Blocked:
    what = f"the target does not have the version any more to which {table} returns"
    data = "its rows may be those of that version or of its cursor"
    return Blocked.of("CMD010", what, table, do=_resync(replicator, table), data=data)


def _resync(replicator: Replicator, table: str) -> str:
    return f"airflow cdc resync {replicator.name} --table {in_shell(table)}"


def _commit_rewinding(
    replicator: Replicator, command: Command, status: TableStatus, current: TargetState, actor: str
) -> None:
    """Raises CommandRefused before any change if the table cannot be restored that far back."""
    control, log = status.control, replicator.log
    assert control is not None
    oldest = log.oldest()
    manifests = list(log.manifests(oldest))
    window = target_window(str(command.arguments["to"]), manifests)
    past = replicator.targets.of(status.table).version_at_or_before(status.table, status.target, window)
    if problem := refusal(
        command, control, window, reached_window(control, manifests), past.control if past else None, oldest
    ):
        raise CommandRefused(problem)
    assert past is not None, "refused above without a version"
    reason = str(command.arguments.get("reason") or f"rewind to window {window} by {command.requested_by}")
    remedy = "the next run finishes it"
    state = State(
        TableState.REWINDING, utc_now(), reason, remedy, command.requested_by, command.id, version=past.version
    )
    commit_fence(replicator, status.table, status.target, current, actor, state)


def rewinding_tables(states: Mapping[str, TargetState], owner: str) -> list[str]:
    """Those whose rewind an earlier process began, and which can still be finished."""
    controls = ((table, current.control) for table, current in states.items())
    return [
        table
        for table, control in controls
        if control
        and control.state.name is TableState.REWINDING
        and control.state.version is not None
        and control.owner == owner
    ]
