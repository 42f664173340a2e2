"""Finishes the commands that a run carried out: resync, verify, and replay or discard of bad records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.control.results import Results
from airflow_cdc_provider.core.decisions.commands import BLOCKED, CARRIED_OUT, RECORD_COMMANDS, Command, CommandKind
from airflow_cdc_provider.core.decisions.left_tables import LEFT, left_note
from airflow_cdc_provider.core.decisions.operator_decisions import OperatorDecision, decisions_by_record
from airflow_cdc_provider.core.decisions.pending_resyncs import AFTER_COPY, has_carried_out
from airflow_cdc_provider.core.decisions.run_decision import RunDecision
from airflow_cdc_provider.core.decisions.run_plan import RunPlan
from airflow_cdc_provider.core.decisions.steps import Outcome, TableResult
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState

COMPARED = (Outcome.DONE, Outcome.UNCHANGED)


def complete_commands(
    replicator: Replicator, decision: RunDecision, rows: Mapping[str, TableRow], results: Results
) -> None:
    """``rows``: of all tables of the run. A command with unfinished tables stays open for the next run. A resync ends,
    too, if a run that has died since had made its last copy."""
    for command in replicator.state.pending(replicator.name):
        started = command.id in decision.plan.commands
        named = [row for row in rows.values() if command.names(row.table)]
        ended = bool(command.ended) and not named and command.ended.keys() >= set(command.tables)
        if command.kind is CommandKind.RESYNC and (named or ended):
            _complete_resync(replicator, command, started, named)
        elif command.kind is CommandKind.VERIFY and (started or ended):
            _complete_verify(replicator, command, decision.plan, named, results)
        elif command.kind in RECORD_COMMANDS and (started or ended):
            _complete_record_command(replicator, command, decision.plan, named, results)
        elif command.kind in RECORD_COMMANDS:
            _note_applied(replicator, command, named, results)


def _complete_resync(replicator: Replicator, command: Command, started: bool, named: Sequence[TableRow]) -> None:
    """It ends at once for tables that are blocked, and stays open for others."""
    copied = [row.table for row in named if _is_copied(row, command)]
    blocked = [row for row in named if started and row.state is TableState.BLOCKED and row.table not in copied]
    ended = {**command.ended, **dict.fromkeys((row.table for row in blocked), BLOCKED)}
    if {row.table for row in named} - {*copied, *ended}:
        if blocked:
            replicator.state.note_progress(command.id, {**command.result, "ended": ended})
        return
    tables = {
        "blocked": [table for table, how in ended.items() if how == BLOCKED],
        "copied again": [*(table for table, how in ended.items() if how == CARRIED_OUT), *copied],
    }
    body = {"tables": [{"table": row.table, "state": row.state.value, "problem": row.error} for row in named]}
    outcome = [f"{what}: {', '.join(found)}" for what, found in tables.items() if found]
    _finish(replicator, command, outcome, body, failed=bool(tables["blocked"]) or not tables["copied again"])


def _is_copied(row: TableRow, command: Command) -> bool:
    return row.state in AFTER_COPY and row.control is not None and has_carried_out(row.control, command.id)


def _complete_record_command(
    replicator: Replicator, command: Command, plan: RunPlan, named: Sequence[TableRow], results: Results
) -> None:
    """The command stays open for tables that this run did not serve; for the others it has ended. What another decision
    did, it has not carried out."""
    of_run = [row for row in named if row.table in plan.stream and row.control is not None]
    ready = [row for row in of_run if row.state is TableState.REPLICATING]
    record_ids: list[str] = command.arguments["records"]
    log = replicator.log
    waiting = {record.id: record.reason for row in ready for record in log.quarantined_records(row.carry)}
    in_force = _decisions_in_force(command, log.decisions(), ready, results)
    bad = {**command.result.get("still_bad", {}), **{one: waiting[one] for one in record_ids if one in waiting}}
    others = {**command.result.get("others", {}), **_others(command, in_force, bad)}
    decided = {*command.result.get("done", ()), *in_force} - bad.keys() - others.keys()
    done = [one for one in record_ids if one in decided]
    if len(ready) < len(named):
        ended = {**command.ended, **dict.fromkeys((row.table for row in ready), CARRIED_OUT)}
        progress = {"ended": ended, "still_bad": bad, "others": others, "done": done}
        replicator.state.note_progress(command.id, {**command.result, **progress})
        return
    outcome = [f"{record_id} is still bad: {reason}" for record_id, reason in bad.items()]
    outcome += [f"{record_id}: {other} was carried out" for record_id, other in others.items()]
    outcome += [f"{command.kind}: {', '.join(done)}"] if done else []
    body = {"records": [{"id": one, "waiting": one not in done} for one in record_ids]}
    _finish(replicator, command, outcome, body, failed=len(done) < len(record_ids))


def _decisions_in_force(
    command: Command, decisions: Sequence[OperatorDecision], ready: Sequence[TableRow], results: Results
) -> dict[str, list[OperatorDecision]]:
    """Record → the decision of each copy by which it was applied; the newest where no run has reported that."""
    applied, by_id = command.result.get("applied", {}), {decision.id: decision for decision in decisions}
    in_force: dict[str, list[OperatorDecision]] = {}
    for row in ready:
        reported = {**applied.get(row.table, {}), **results.decided(row.table)}
        for record_id, newest in decisions_by_record(decisions, row.table).items():
            in_force.setdefault(record_id, []).append(by_id.get(reported.get(record_id, ""), newest))
    return in_force


def _others(
    command: Command, in_force: Mapping[str, Sequence[OperatorDecision]], bad: Mapping[str, str]
) -> dict[str, str]:
    """Record → the decision of another command about it."""
    own: list[str] | None = command.arguments.get("decisions")
    records = [one for one in command.arguments["records"] if one in in_force and one not in bad]
    others = {one: [it for it in in_force[one] if own is not None and it.id not in own] for one in records}
    return {
        one: f"the {its[0].kind} of {its[0].decided_by} at {its[0].decided_at}" for one, its in others.items() if its
    }


def _note_applied(replicator: Replicator, command: Command, named: Sequence[TableRow], results: Results) -> None:
    """By which decisions this run has applied records of a command that came after its beginning."""
    applied = command.result.get("applied", {})
    for row in named:
        waiting = {record.id for record in replicator.log.quarantined_records(row.carry)}
        ready = results.decided(row.table) if row.state is TableState.REPLICATING else {}
        if now := {one: ready[one] for one in command.arguments["records"] if one in ready and one not in waiting}:
            applied = {**applied, row.table: {**applied.get(row.table, {}), **now}}
    if applied != command.result.get("applied", {}):
        replicator.state.note_progress(command.id, {**command.result, "applied": applied})


def _complete_verify(
    replicator: Replicator, command: Command, plan: RunPlan, named: Sequence[TableRow], results: Results
) -> None:
    """It stays open where the comparison was skipped: a later run makes it."""
    if any(map(command.names, plan.compare)) and not results.has_compared:
        if results.has_skipped("verify"):
            return
        problem = results.step_problem("verify")
        replicator.state.finish(command.id, str(problem), {"tables": [], "identical": False}, failed=True)
        return
    found = [(row, results.comparison(row.table)) for row in named]
    tables = [_comparison(row, result) for row, result in found]
    compared = [row.table for row, result in found if result and result.outcome in COMPARED]
    identical = [table["table"] for table in tables if table["identical"]]
    sides = {
        "identical": identical if len(identical) == len(compared) < len(tables) else [],
        "not identical": [table for table in compared if table not in identical],
        "not compared" if compared else "nothing was compared": [
            f"{row.table} ({result.problem.code if result and result.problem else row.state})"
            for row, result in found
            if row.table not in compared
        ],
    }
    outcome = [f"{what}: {', '.join(names)}" for what, names in sides.items() if names]
    if not outcome and (compared or not command.ended):
        outcome = ["identical" if compared else "nothing was compared: no tables"]
    if any(table["inexact"] for table in tables):
        outcome.append("inexact: rows that changed during the comparison may differ")
    if apart := [f"{table['table']} ({', '.join(table['not_compared'])})" for table in tables if table["not_compared"]]:
        outcome.append(f"columns not compared: {', '.join(apart)}")
    left = command.ended.keys() & set(command.tables)
    body = {"tables": tables, "identical": bool(tables) and len(identical) == len(tables) and not left}
    _finish(replicator, command, outcome, body, failed=not compared)


def _finish(
    replicator: Replicator, command: Command, outcome: list[str], body: dict[str, Any], failed: bool = False
) -> None:
    """With the tables that left meanwhile."""
    left = {table: why for table, why in command.ended.items() if why in LEFT}
    if left:
        outcome = [*outcome, left_note(left)]
        body = {**body, "left": {table: f"{why} it" for table, why in left.items()}}
    replicator.state.finish(command.id, "; ".join(outcome), body, failed=failed)


def _comparison(row: TableRow, result: TableResult | None) -> dict[str, Any]:
    """The result for one table. A table that could not be compared counts as not identical."""
    detail = dict(result.detail) if result else {}
    done = result is not None and result.outcome in COMPARED
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
        "not_compared": detail.get("not_compared", []),
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
