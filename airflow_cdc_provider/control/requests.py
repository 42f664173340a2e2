"""Requests of operators: what of them needs no Spark is done here, by the command line or by a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.gathering import Gathered
from airflow_cdc_provider.control.replicator import Replicator, utc_now
from airflow_cdc_provider.core.commands import Command, CommandKind
from airflow_cdc_provider.core.decisions import Decision, DecisionKind, decision_path
from airflow_cdc_provider.core.errors import Fenced, Problem
from airflow_cdc_provider.core.orders import Order, orders
from airflow_cdc_provider.core.plain import to_plain

AT_ONCE = (CommandKind.PAUSE, CommandKind.RESUME)


def carry_out(replicator: Replicator, gathered: Gathered, by: str) -> bool:
    """Every pending pause and resume. Says whether any table was fenced: the facts are old then. A table that somebody
    else moved meanwhile keeps its request pending; the next run tries again."""
    fenced = False
    for command in gathered.facts.commands:
        if command.kind in AT_ONCE:
            fenced |= _carry_out(replicator, gathered, command, by)
            if fenced:
                break  # later requests speak of what stands in the target now
    return fenced


def _carry_out(replicator: Replicator, gathered: Gathered, command: Command, by: str) -> bool:
    tasks = [table.task for table in gathered.facts.tables if table.problem is None]
    told = orders(command, tasks, utc_now())
    replicator.state.start(command.id, by)
    moved: list[str] = []
    for order in told:
        if order.state is None:
            continue
        task = next(task for task in tasks if task.table == order.table)
        try:
            commit_fence(replicator, task.table, task.target, gathered.held[task.table], by, order.state)
        except Fenced:
            return True
        moved.append(order.table)
    refused = [order.refusal for order in told if order.refusal]
    replicator.state.finish(command.id, outcome(command, moved, refused), _result(told), failed=bool(refused))
    return bool(moved)


def outcome(command: Command, moved: Sequence[str], refused: Sequence[Problem]) -> str:
    done = f"{command.kind}: {', '.join(moved) or 'nothing to change'}"
    return "; ".join([done, *(f"refused: {problem.what}" for problem in refused)])


def _result(told: Sequence[Order]) -> dict[str, object]:
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
    """An operator's yes to what a resync of this table deletes."""
    moment = datetime.now(UTC)
    decision = Decision(
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
