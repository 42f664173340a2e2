"""Finishes the commands that a run carried out: resync, verify, and replay or discard of bad records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.control.results import Results
from airflow_cdc_provider.core.decisions.commands import RECORD_COMMANDS, Command, CommandKind
from airflow_cdc_provider.core.decisions.run_decision import RunDecision
from airflow_cdc_provider.core.decisions.steps import Outcome, TableResult
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState


def complete_commands(
    replicator: Replicator, decision: RunDecision, rows: Mapping[str, TableRow], results: Results
) -> None:
    """A command with unfinished tables stays open for the next run, unless one of its tables is blocked."""
    for command_id in decision.plan.commands:
        command = replicator.state.command(command_id)
        if command is None or command.finished:
            continue
        if command.kind is CommandKind.VERIFY:
            _complete_verify(replicator, command, rows, results)
        elif command.kind in RECORD_COMMANDS:
            _complete_record_command(replicator, command, rows)
        else:
            _complete_resync(replicator, command, rows, results)


def _complete_resync(replicator: Replicator, command: Command, rows: Mapping[str, TableRow], results: Results) -> None:
    named = [row for row in rows.values() if command.names(row.table)]
    blocked = [row.table for row in named if row.state is TableState.BLOCKED]
    copied = {r.table for row in named for r in results.of_table(row.table, _COPIES) if r.outcome is Outcome.DONE}
    copied |= {row.table for row in named if row.control and row.control.state.command == command.id}
    unfinished = [row.table for row in named if row.state is not TableState.REPLICATING or row.table not in copied]
    if unfinished and not blocked:
        return
    body = {"tables": [{"table": row.table, "state": row.state.value, "problem": row.error} for row in named]}
    outcome = f"blocked: {', '.join(blocked)}" if blocked else f"copied again: {', '.join(row.table for row in named)}"
    replicator.state.finish(command.id, outcome, body, failed=bool(blocked))


def _complete_record_command(replicator: Replicator, command: Command, rows: Mapping[str, TableRow]) -> None:
    """The command stays open while one of its tables does not take changes or has failed."""
    named = [row for row in rows.values() if command.names(row.table)]
    if any(row.state is not TableState.REPLICATING or row.control is None for row in named):
        return
    waiting = {
        record.id: record
        for row in named
        if row.control
        for record in replicator.log.quarantined_records(row.control.carry)
    }
    record_ids: list[str] = command.arguments["records"]
    still_bad = [waiting[record_id] for record_id in record_ids if record_id in waiting]
    outcome = [f"{record.id} is still bad: {record.reason}" for record in still_bad]
    done = [record_id for record_id in record_ids if record_id not in waiting]
    outcome += [f"{command.kind}: {', '.join(done)}"] if done else []
    body = {"records": [{"id": record_id, "waiting": record_id in waiting} for record_id in record_ids]}
    replicator.state.finish(command.id, "; ".join(outcome), body, failed=bool(still_bad))


_COPIES = ("snapshot", "reconcile.resync")


def _complete_verify(replicator: Replicator, command: Command, rows: Mapping[str, TableRow], results: Results) -> None:
    step = results.steps.get("verify")
    if step is None or step.problem:
        problem = results.step_problem("verify")
        replicator.state.finish(command.id, str(problem), {"tables": [], "identical": False}, failed=True)
        return
    results_by_table = {result.table: result for result in step.tables}
    tables = [_comparison(row, results_by_table.get(table)) for table, row in rows.items() if command.names(table)]
    identical = bool(tables) and all(table["identical"] for table in tables)
    differing = ", ".join(str(table["table"]) for table in tables if not table["identical"])
    outcome = "identical" if identical else f"not identical: {differing}"
    if any(table["inexact"] for table in tables):
        outcome += "; inexact: rows that changed during the comparison may differ"
    replicator.state.finish(command.id, outcome, {"tables": tables, "identical": identical})


def _comparison(row: TableRow, result: TableResult | None) -> dict[str, Any]:
    """The result for one table. A table that could not be compared counts as not identical."""
    detail = dict(result.detail) if result else {}
    done = result is not None and result.outcome in (Outcome.DONE, Outcome.UNCHANGED)
    return {
        "table": row.table,
        "source_rows": detail.get("source_rows"),
        "target_rows": detail.get("target_rows"),
        "identical": done and detail.get("identical") is True,
        "inexact": detail.get("inexact") is True,
        "differences": detail.get("differences", []),
        "differing": detail.get("differing", 0),
        "repaired": detail.get("repaired", 0),
        "not_repaired": detail.get("not_repaired", ""),
        "rows_read": detail.get("rows_read"),
        "report": detail.get("report", ""),
        "state": row.state.value,
        "problem": str(result.problem) if result and result.problem else row.error or _waiting_records(row),
        "fresh_at": row.fresh_at,
        "changes": row.changes,
    }


def _waiting_records(row: TableRow) -> str:
    carry = row.carry
    if not carry.waiting:
        return ""
    return f"{carry.quarantined} records in quarantine, {carry.dirty} to fetch, {carry.parked} parked"
