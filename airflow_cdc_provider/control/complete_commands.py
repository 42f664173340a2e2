"""The end of requests that a run carried out: a new copy, a comparison, bad records tried again or given up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.control.results import Results
from airflow_cdc_provider.core.decisions.commands import RECORD_COMMANDS, Command, CommandKind
from airflow_cdc_provider.core.decisions.run_decision import RunDecision
from airflow_cdc_provider.core.decisions.steps import Outcome, TableResult
from airflow_cdc_provider.core.log.carry_over import NOTHING
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState


def complete_commands(
    replicator: Replicator, decision: RunDecision, rows: Mapping[str, TableRow], results: Results
) -> None:
    """A request whose tables are not all done stays with the next run, unless one of them is blocked."""
    for command_id in decision.plan.commands:
        command = replicator.state.command(command_id)
        if command is None or command.finished:
            continue
        if command.kind is CommandKind.VERIFY:
            _end_verify(replicator, command, rows, results)
        elif command.kind in RECORD_COMMANDS:
            _end_about_records(replicator, command, rows)
        else:
            _end_resync(replicator, command, rows, results)


def _end_resync(replicator: Replicator, command: Command, rows: Mapping[str, TableRow], results: Results) -> None:
    named = [row for row in rows.values() if command.names(row.table)]
    blocked = [row.table for row in named if row.state is TableState.BLOCKED]
    copied = {r.table for row in named for r in results.of_table(row.table, _COPIES) if r.outcome is Outcome.DONE}
    copied |= {row.table for row in named if row.control and row.control.state.command == command.id}
    open_ = [row.table for row in named if row.state is not TableState.REPLICATING or row.table not in copied]
    if open_ and not blocked:
        return
    body = {"tables": [{"table": row.table, "state": row.state.value, "problem": row.error} for row in named]}
    told = f"blocked: {', '.join(blocked)}" if blocked else f"copied again: {', '.join(row.table for row in named)}"
    replicator.state.finish(command.id, told, body, failed=bool(blocked))


def _end_about_records(replicator: Replicator, command: Command, rows: Mapping[str, TableRow]) -> None:
    """A table that takes no changes now, or failed, will tell in a later run."""
    named = [row for row in rows.values() if command.names(row.table)]
    if any(row.state is not TableState.REPLICATING or row.control is None for row in named):
        return
    waiting = {
        one.id: one for row in named if row.control for one in replicator.log.quarantined_records(row.control.carry)
    }
    asked: list[str] = command.arguments["records"]
    left = [waiting[one] for one in asked if one in waiting]
    told = [f"{one.id} is still bad: {one.reason}" for one in left]
    done = [one for one in asked if one not in waiting]
    told += [f"{command.kind}: {', '.join(done)}"] if done else []
    body = {"records": [{"id": one, "waiting": one in waiting} for one in asked]}
    replicator.state.finish(command.id, "; ".join(told), body, failed=bool(left))


_COPIES = ("snapshot", "reconcile.resync")


def _end_verify(replicator: Replicator, command: Command, rows: Mapping[str, TableRow], results: Results) -> None:
    step = results.steps.get("verify")
    if step is None or step.problem:
        what = results.of_step("verify")
        replicator.state.finish(command.id, str(what), {"tables": [], "identical": False}, failed=True)
        return
    said = {result.table: result for result in step.tables}
    tables = [_compared(row, said.get(table)) for table, row in rows.items() if command.names(table)]
    identical = bool(tables) and all(table["identical"] for table in tables)
    differing = ", ".join(str(table["table"]) for table in tables if not table["identical"])
    told = "identical" if identical else f"not identical: {differing}"
    if any(table["inexact"] for table in tables):
        told += "; inexact: rows that changed while the source was read may differ"
    replicator.state.finish(command.id, told, {"tables": tables, "identical": identical})


def _compared(row: TableRow, result: TableResult | None) -> dict[str, Any]:
    """One line of the comparison. A table that could not be compared is not identical."""
    detail = dict(result.detail) if result else {}
    done = result is not None and result.outcome in (Outcome.DONE, Outcome.UNCHANGED)
    return {
        "table": row.table,
        "source_rows": detail.get("source_rows"),
        "target_rows": detail.get("target_rows"),
        "identical": done and detail.get("identical") is True,
        "inexact": detail.get("inexact") is True,
        "differences": detail.get("differences", []),
        "state": row.state.value,
        "problem": str(result.problem) if result and result.problem else row.error or _waiting(row),
        "fresh_at": row.fresh_at,
        "changes": row.changes,
    }


def _waiting(row: TableRow) -> str:
    carry = row.control.carry if row.control else NOTHING
    if not carry.waiting:
        return ""
    return f"{carry.quarantined} records in quarantine, {carry.dirty} to be fetched, {carry.parked} parked behind them"
