"""What ``pause`` and ``resume`` ask of each table. They need no Spark: a fence commit carries them out at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_cdc_provider.core.commands import Command, CommandKind
from airflow_cdc_provider.core.errors import CommandRefused, Problem
from airflow_cdc_provider.core.states import State, TableState, require_move
from airflow_cdc_provider.core.steps import TableTask


@dataclass(frozen=True)
class Order:
    """The state a table is to be fenced into; None where it is in that state already, or the ``refusal`` why not."""

    table: str
    state: State | None = None
    refusal: Problem | None = None


def orders(command: Command, tables: Sequence[TableTask], at: str) -> tuple[Order, ...]:
    """One order per table the command names, in the order of ``tables``; unknown names come last."""
    known = {task.table for task in tables}
    unknown = (Order(name, refusal=_unknown(command, name)) for name in command.tables if name not in known)
    return (*(_order(command, task, at) for task in tables if command.names(task.table)), *unknown)


def _order(command: Command, task: TableTask, at: str) -> Order:
    if task.control is None:
        return Order(task.table, refusal=_no_copy(command, task))
    wanted = TableState.PAUSED if command.kind is CommandKind.PAUSE else TableState.REPLICATING
    if task.state is wanted:
        return Order(task.table)
    if task.state is TableState.RESYNCING:
        return Order(task.table, refusal=_copying(command, task))
    try:
        require_move(task.table, task.state, wanted)
    except CommandRefused as refused:
        return Order(task.table, refusal=refused.problems[0])
    return Order(
        task.table, State(wanted, at, _reason(command), _remedy(command, task), command.requested_by, command.id)
    )


def _reason(command: Command) -> str:
    told = command.arguments.get("reason")
    return str(told) if told else f"{command.kind} by {command.requested_by}"


def _remedy(command: Command, task: TableTask) -> str:
    if command.kind is CommandKind.PAUSE:
        return f"airflow cdc resume {command.replicator} --table {task.table}"
    return ""


def _no_copy(command: Command, task: TableTask) -> Problem:
    return Problem(
        "CMD003",
        f"{task.table} has no copy yet",
        where=task.table,
        found="pending",
        do=f"{command.kind} it after its first copy",
    )


def _copying(command: Command, task: TableTask) -> Problem:
    return Problem(
        "CMD004",
        f"{task.table} is being copied again",
        where=task.table,
        found="resyncing",
        do=f"{command.kind} it when the copy is done",
    )


def _unknown(command: Command, name: str) -> Problem:
    return Problem("CMD005", f"{command.replicator} has no table {name}", where=name)
