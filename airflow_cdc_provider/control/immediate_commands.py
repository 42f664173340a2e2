"""Commands that need no Spark: pause, resume and rewind. The command line or a run carries them out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.first_copies import change_copy, end_pauses, row_of_copy, stopped_copies
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.control.rewind import rewind
from airflow_cdc_provider.control.table_rows import current_row
from airflow_cdc_provider.core.decisions.commands import CARRIED_OUT, Command, CommandKind
from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, new_decision
from airflow_cdc_provider.core.decisions.pause_resume import (
    StateChange,
    TableStatus,
    no_copy,
    plan_state_changes,
    unknown_tables,
)
from airflow_cdc_provider.core.decisions.table_checks import check_store
from airflow_cdc_provider.core.errors import UNREADABLE, Fenced, Problem
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.targets.target import TargetState

UNCHANGED = "unchanged"

IMMEDIATE = frozenset({CommandKind.PAUSE, CommandKind.RESUME, CommandKind.REWIND})


def carry_out(
    replicator: Replicator,
    commands: Iterable[Command],
    targets: Mapping[str, str],
    states: Mapping[str, TargetState],
    actor: str,
) -> bool:
    """Carry out every pause, resume and rewind of ``commands``, in their order. ``targets``: source table → target
    table; ``states``: target states that were read already. Returns whether a table may have been fenced, so that
    ``states`` is stale.

    A command stays pending for the next run if one of its target tables cannot be read or has a newer commit; so do
    later commands for the same tables. A command that another process has finished meanwhile is skipped."""
    current, postponed, fenced = dict(states), list[Command](), False
    for command in commands:
        if command.kind not in IMMEDIATE:
            continue
        named = {table: target for table, target in targets.items() if command.names(table)}
        if any(_share_a_table(command, other) for other in postponed):
            postponed.append(command)
            continue
        try:
            for table in named.keys() - current.keys():
                current[table] = replicator.targets.state(table, named[table])
            # After the reads: a command that is open now was open when its tables were read.
            if (now := replicator.state.command(command.id)) is not None and not now.finished:
                left = {table: target for table, target in named.items() if now.names(table)}
                fenced |= _carry_out(replicator, now, left, current, actor)
        except (Fenced, *UNREADABLE):
            postponed.append(command)
            fenced = True
        for table in named:
            current.pop(table, None)
    return fenced


def _share_a_table(command: Command, other: Command) -> bool:
    return not command.tables or not other.tables or not set(command.tables).isdisjoint(other.tables)


def _carry_out(
    replicator: Replicator, command: Command, named: Mapping[str, str], states: Mapping[str, TargetState], actor: str
) -> bool:
    """Raises Fenced if a table has a newer commit."""
    stopped, foreign = stopped_copies(replicator, named), _foreign_tables(replicator, named, states)
    tables = [
        TableStatus(table, target, states[table].control, states[table].exists, stopped.get(table), foreign.get(table))
        for table, target in named.items()
    ]
    if command.kind is CommandKind.REWIND:
        changes = _rewind_tables(replicator, command, tables, states, actor)
    else:
        changes = plan_state_changes(command, tables, utc_now())
        for change in changes:
            if change.state is None:
                continue
            if states[change.table].control is None:
                change_copy(replicator, change.table, named[change.table], change.state)
            else:
                commit_fence(replicator, change.table, named[change.table], states[change.table], actor, change.state)
    if command.kind is CommandKind.RESUME:
        end_pauses(replicator, (one.table for one in changes if one.table in stopped and one.refusal is None))
    changed = [change.table for change in changes if change.state is not None]
    failpoint("request.fenced")
    own = {table: target for table, target in named.items() if table not in foreign}
    _write_rows(replicator, own, changed)
    failpoint("request.shown")
    ended = _ended_tables(command, changes)
    refused = any(one["problem"] for one in ended)
    replicator.state.finish(command.id, _outcome(command, ended), {"tables": ended}, failed=refused)
    return bool(changed)


def _foreign_tables(
    replicator: Replicator, named: Mapping[str, str], states: Mapping[str, TargetState]
) -> dict[str, Problem]:
    """Why the copies of another state store are left to it."""
    name, owner = replicator.name, replicator.state.owner()
    copied = ((table, target, states[table].control) for table, target in named.items())
    found = {table: check_store(name, table, target, control, owner) for table, target, control in copied if control}
    return {table: problem for table, problem in found.items() if problem}


def _write_rows(replicator: Replicator, named: Mapping[str, str], changed: Collection[str]) -> None:
    """The index shows the tables as they are now. Before the command is finished: an idle run takes from the index what
    no open command is about. ``changed``: the tables that the command changed."""
    controls = {table: replicator.targets.state(table, target).control for table, target in named.items()}
    stopped = stopped_copies(replicator, [table for table, control in controls.items() if control is None])
    at = replicator.state.now()
    replicator.state.change_tables(
        replicator.name,
        lambda before: [
            current_row(table, named[table], control, before.get(table), at)
            if control
            else row_of_copy(before[table], stopped.get(table))
            for table, control in controls.items()
            if control or (table in before and (table in changed or table in stopped))
        ],
    )


def _rewind_tables(
    replicator: Replicator,
    command: Command,
    tables: Sequence[TableStatus],
    states: Mapping[str, TargetState],
    actor: str,
) -> tuple[StateChange, ...]:
    """Each table as its rewind has ended: a later copy of it is not rewound while the command is open for others."""
    changes = list[StateChange]()
    for table in tables:
        if table.control is None:
            changes.append(StateChange(table.table, refusal=no_copy(command, table)))
        elif table.foreign:
            changes.append(StateChange(table.table, refusal=table.foreign))
        else:
            changes.append(rewind(replicator, command, table, states[table.table], actor))
            _write_rows(replicator, {table.table: table.target}, [table.table])
        ended = {**command.ended, **{one.table: CARRIED_OUT for one in changes}}
        progress = {**command.result, "ended": ended, "tables": _ended_tables(command, changes)}
        replicator.state.note_progress(command.id, progress)
    return (*changes, *unknown_tables(command, tables))


def _outcome(command: Command, ended: Sequence[Mapping[str, Any]]) -> str:
    changed = [one["table"] for one in ended if one["state"] != UNCHANGED]
    done = f"{command.kind}: {', '.join(changed) or 'nothing to change'}"
    return "; ".join([done, *(f"refused: {one['problem']['what']}" for one in ended if one["problem"])])


def _ended_tables(command: Command, changes: Sequence[StateChange]) -> list[Mapping[str, Any]]:
    return [
        *command.ended_tables,
        *(
            {
                "table": change.table,
                "state": change.state.name.value if change.state else UNCHANGED,
                "problem": to_plain(change.refusal),
            }
            for change in changes
        ),
    ]


def approve_deletes(replicator: Replicator, command: Command, table: str) -> None:
    """Write the operator's decision that a resync of this table may delete more rows than ``resync.max_delete``."""
    decision = new_decision(
        DecisionKind.APPROVE_DELETES,
        replicator.name,
        table,
        command.requested_by,
        about=command.id,
        command=command.id,
        reason=str(command.arguments.get("reason", "")),
    )
    replicator.log.write_decision(decision)
    failpoint("decision.after")
