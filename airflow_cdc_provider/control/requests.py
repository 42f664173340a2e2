"""Requests of operators: what of them needs no Spark is done here, by the command line or by a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.replicator import Replicator, utc_now
from airflow_cdc_provider.control.rewind import rewind
from airflow_cdc_provider.core.decisions.commands import Command, CommandKind
from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, OperatorDecision, decision_path
from airflow_cdc_provider.core.decisions.pause_resume import (
    StateChange,
    TableStatus,
    no_copy,
    plan_state_changes,
    unknown_tables,
)
from airflow_cdc_provider.core.errors import Fenced, Problem, Retryable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.targets.target import TargetState

AT_ONCE = frozenset({CommandKind.PAUSE, CommandKind.RESUME, CommandKind.REWIND})


def carry_out(
    replicator: Replicator,
    commands: Iterable[Command],
    targets: Mapping[str, str],
    held: Mapping[str, TargetState],
    by: str,
) -> bool:
    """Every pause, resume and rewind among ``commands``, in their order. ``targets``: source table → target table;
    ``held``: what was read of those that could be. Says whether any table may have been fenced: then what was read is
    old.

    A request stays pending, for the next run, while a table of it does not answer or somebody else moves it; so do
    later requests about the same tables. One that another process has carried out meanwhile is left as it is."""
    standing, waiting, fenced = dict(held), list[Command](), False
    for command in commands:
        if command.kind not in AT_ONCE:
            continue
        named = {table: target for table, target in targets.items() if command.names(table)}
        if any(_in_common(command, other) for other in waiting):
            waiting.append(command)
            continue
        try:
            for table in named.keys() - standing.keys():
                standing[table] = replicator.target.state(table, named[table])
            # In this order: a request that is open now was open when its tables were read.
            if (now := replicator.state.command(command.id)) is not None and not now.finished:
                fenced |= _carry_out(replicator, command, named, standing, by)
        except (Fenced, Retryable):
            waiting.append(command)
            fenced = True
        for table in named:
            standing.pop(table, None)
    return fenced


def _in_common(one: Command, other: Command) -> bool:
    return not one.tables or not other.tables or not set(one.tables).isdisjoint(other.tables)


def _carry_out(
    replicator: Replicator, command: Command, named: Mapping[str, str], held: Mapping[str, TargetState], by: str
) -> bool:
    """Raises Fenced where somebody moved a table meanwhile."""
    standing = [TableStatus(table, target, held[table].control) for table, target in named.items()]
    if command.kind is CommandKind.REWIND:
        told = _rewind(replicator, command, standing, held, by)
    else:
        told = plan_state_changes(command, standing, utc_now())
        _fence(replicator, told, standing, held, by)
    moved = [order.table for order in told if order.state is not None]
    refused = [order.refusal for order in told if order.refusal]
    failpoint("request.fenced")
    replicator.state.finish(command.id, _outcome(command, moved, refused), _result(told), failed=bool(refused))
    return bool(moved)


def _fence(
    replicator: Replicator,
    told: Iterable[StateChange],
    standing: Sequence[TableStatus],
    held: Mapping[str, TargetState],
    by: str,
) -> None:
    targets = {one.table: one.target for one in standing}
    for order in told:
        if order.state is not None:
            commit_fence(replicator, order.table, targets[order.table], held[order.table], by, order.state)


def _rewind(
    replicator: Replicator, command: Command, standing: Sequence[TableStatus], held: Mapping[str, TargetState], by: str
) -> tuple[StateChange, ...]:
    told = [
        StateChange(one.table, refusal=no_copy(command, one))
        if one.control is None
        else rewind(replicator, command, one, held[one.table], by)
        for one in standing
        if command.names(one.table)
    ]
    return (*told, *unknown_tables(command, standing))


def _outcome(command: Command, moved: Sequence[str], refused: Sequence[Problem]) -> str:
    done = f"{command.kind}: {', '.join(moved) or 'nothing to change'}"
    return "; ".join([done, *(f"refused: {problem.what}" for problem in refused)])


def _result(told: Sequence[StateChange]) -> dict[str, object]:
    return {
        "tables": [
            {
                "table": order.table,
                "state": order.state.name.value if order.state else "unchanged",
                "problem": to_plain(order.refusal),
            }
            for order in told
        ]
    }


def approve(replicator: Replicator, command: Command, table: str) -> None:
    """Write down an operator's yes to what a resync of this table deletes."""
    moment = datetime.now(UTC)
    decision = OperatorDecision(
        id=f"{moment:%Y%m%dT%H%M%S%f}-{command.id}",
        kind=DecisionKind.APPROVE_DELETES,
        replicator=replicator.name,
        table=table,
        decided_by=command.requested_by,
        decided_at=moment.isoformat(timespec="milliseconds"),
        command=command.id,
        reason=str(command.arguments.get("reason", "")),
    )
    replicator.log.store.create(decision_path(decision.id), json.dumps(to_plain(decision)).encode())
    failpoint("decision.after")
