"""The decision about one table in a run. Pure.

Rules by precedence: the status of the target table, its owner, then its consistency with change log, source and
definition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from airflow_cdc_provider.core.decisions.facts import Facts, TableFacts
from airflow_cdc_provider.core.decisions.holes import first_hole, first_pending_window
from airflow_cdc_provider.core.decisions.pending_resyncs import pending_resyncs
from airflow_cdc_provider.core.decisions.renamed_tables import rename_question
from airflow_cdc_provider.core.decisions.schema_decisions import asked, copy_question
from airflow_cdc_provider.core.decisions.table_checks import (
    check_definition,
    check_log,
    check_owner,
    check_retention,
    check_source,
    repair_line,
    resync_line,
)
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.change_log import REQUESTED, Hole
from airflow_cdc_provider.core.spec.definition import repairs_itself
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.schema_policy import OnChange
from airflow_cdc_provider.core.spec.snapshot import SnapshotMode
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.identity import RECOMPUTED
from airflow_cdc_provider.core.table.questions import Question
from airflow_cdc_provider.core.table.schema_changes import ChangeKind
from airflow_cdc_provider.core.table.states import State, TableState

STOPPED = "TBL001"
"""The problem of a table whose stored state stops it: its text is that state's reason."""


class TableAction(StrEnum):
    """``stream``: apply changes. ``copy``: first copy; ``reconcile``: another copy; ``copying``: another run is copying
    the table. ``paused``, ``blocked`` and ``failing``: no change in this run."""

    STREAM = "stream"
    COPY = "copy"
    RECONCILE = "reconcile"
    COPYING = "copying"
    PAUSED = "paused"
    BLOCKED = "blocked"
    FAILING = "failing"


class Cause(StrEnum):
    """The scope of a problem: the table, or the source or change log, which may affect all tables."""

    TABLE = "table"
    SOURCE = "source"
    LOG = "log"


@dataclass(frozen=True)
class TableDecision:
    """``pending_window``: the first sealed window after the cursor with records of the table; None if there is none.
    ``command``: the id of the command that requested the action. ``fence``: the table was restored by another tool, so
    its fence must be raised first. ``dirty``: rows must be fetched from the source. ``compare``: the source rewrote the
    rows, and only a comparison shows whether they changed. ``question``: what the table waits for from now on.
    ``waits``: the action does not begin in this run."""

    table: str
    action: TableAction
    reason: str = ""
    problem: Problem | None = None
    pending_window: int | None = None
    command: str = ""
    cause: Cause = Cause.TABLE
    fence: bool = False
    dirty: bool = False
    compare: bool = False
    question: Question | None = None
    waits: bool = False


def decide_table(facts: Facts, table: TableFacts) -> TableDecision:
    """The decision about one table. A requested ``resync`` has precedence over problems that a copy repairs, a pause
    over a ``resync``."""
    name, control = table.task.table, table.task.control
    command = next(reversed(pending_resyncs(facts.commands, name, control)), "")
    if table.problem:
        return TableDecision(name, TableAction.FAILING, table.problem.what, table.problem)
    if table.copied_by:
        return TableDecision(name, TableAction.COPYING, f"run {table.copied_by} is copying the table")
    if table.refused and not _is_paused(table):
        return _blocked(name, table.refused)
    if control is None:
        return _decide_without_control(facts, table, command)
    if problem := check_owner(facts, table, control):
        return _blocked(name, problem, Cause.LOG if control.replicator == facts.definition.name else Cause.TABLE)
    if table.unfit and not table.unfit.copy_helps and not _is_paused(table):
        return _blocked(name, table.unfit.problem)
    if command:
        return TableDecision(name, TableAction.RECONCILE, "a resync was requested", command=command)
    return _decide_by_state(facts, table, control)


def _is_paused(table: TableFacts) -> bool:
    state = table.task.control.state if table.task.control else table.first_copy
    return state is not None and state.name is TableState.PAUSED


def _decide_without_control(facts: Facts, table: TableFacts, command: str) -> TableDecision:
    name = table.task.table
    takes_over = table.task.rule.snapshot.takes_over and not table.known
    if table.exists and not takes_over:
        return _blocked(name, _lost_record(facts, table) if table.restored else _not_its_copy(table))
    stopped = table.first_copy
    if stopped and stopped.name is TableState.PAUSED:
        return TableDecision(name, TableAction.PAUSED, stopped.reason)
    if stopped and not command:
        return _blocked(name, _stopped(name, stopped, "the target has no copy yet"))
    if table.known and not command and table.task.rule.snapshot.mode is not SnapshotMode.WHEN_NEEDED:
        problem = Problem(
            "TGT002",
            f"the target table of {name} is missing",
            where=table.task.target,
            found="no table",
            allowed="the table that this replicator created",
            do=f"restore it, or copy it again: {resync_line(facts, name)}",
            data="its changes are kept in the change log",
        )
        return _blocked(name, problem)
    no_copies = all(other.task.control is None for other in facts.tables)
    if facts.stream.lost and not command and not no_copies:
        return _blocked(name, facts.stream.lost, Cause.SOURCE)
    reason = "the target has no copy yet"
    if table.exists:
        reason = "an existing table is taken over"
    elif not table.task.rule.snapshot.extent.rows:
        reason += "; the table starts without rows"
    return TableDecision(name, TableAction.COPY, reason, command=command)


def _not_its_copy(table: TableFacts) -> Problem:
    name = table.task.table
    return Problem(
        "TGT012",
        f"the target table of {name} exists, and is not its copy",
        where=table.task.target,
        found=f"a table without a control record of {name}",
        allowed="no table, or the copy that this replicator made under this name",
        do="rename the table, or set another `target` in the YAML; if it is the copy in a target that had another "
        "name, give the target that name again",
        data="nothing was written to it",
    )


def _lost_record(facts: Facts, table: TableFacts) -> Problem:
    name = table.task.table
    return Problem(
        "TGT012",
        f"the history of the target table of {name} does not show which changes its rows have",
        where=table.task.target,
        found="a table that another tool restored to a time, or to a version before the commits of this replicator, or "
        "whose history it has cut",
        allowed="a table restored to the number of a version that this replicator has committed",
        do=f"restore it to such a version; or rename or drop the table, then {resync_line(facts, name)}",
        data="nothing was written to it",
    )


def _decide_by_state(facts: Facts, table: TableFacts, control: ControlRecord) -> TableDecision:
    name, state = table.task.table, control.state
    match state.name:
        case TableState.PAUSED:
            return TableDecision(name, TableAction.PAUSED, state.reason or "paused by an operator")
        case TableState.BLOCKED:
            return _blocked(name, _stopped(name, state, "the change log keeps its windows"))
        case TableState.RESYNCING:
            return TableDecision(
                name, TableAction.RECONCILE, state.reason or "an earlier resync did not finish", command=state.command
            )
        case TableState.REWINDING:
            do = resync_line(facts, name)
            do = do if state.version is None else f"wait for the next run, which finishes it; if it does not: {do}"
            return _blocked(name, Problem("TBL002", f"a rewind of {name} did not finish", where=name, do=do))
        case _:
            return _decide_replicating(facts, table, control)


def _decide_replicating(facts: Facts, table: TableFacts, control: ControlRecord) -> TableDecision:
    name = table.task.table
    if table.unfit:
        return _blocked(name, table.unfit.problem)
    if problem := check_log(facts, name, control):
        return _blocked(name, problem, Cause.LOG)
    if problem := check_source(facts, name, control):
        return _blocked(name, problem, Cause.SOURCE)
    if problem := check_definition(facts, table, control):
        return _blocked(name, problem)
    if problem := check_retention(facts, name, control):
        if table.task.rule.snapshot.mode is SnapshotMode.WHEN_NEEDED:
            return TableDecision(name, TableAction.RECONCILE, problem.what)
        return _blocked(name, problem)
    if problem := facts.stream.outside.get(table.task.source_table):
        return _blocked(name, problem)
    if table.renamed:
        question = rename_question(control, table.task.renamed_to)
        return replace(_blocked(name, asked(control, question)), question=question)
    if hole := first_hole(facts.log, control):
        return _decide_with_hole(facts, table, hole)
    if decision := _decide_unlogged(facts, table, control):
        return decision
    pending = first_pending_window(facts.log, control)
    if facts.stream.lost and pending is None:
        if not repairs_itself(facts.definition, table.task.rule):
            return _blocked(name, facts.stream.lost, Cause.SOURCE)
        return TableDecision(name, TableAction.RECONCILE, facts.stream.lost.what)
    reason = f"windows {pending} to {facts.log.sealed} are not applied yet" if pending else ""
    compare = table.unlogged.may_differ and table.task.rule.history is not History.LOG
    reason = reason or ((table.unlogged.doubted or "its rows were rewritten at the source") if compare else "")
    dirty = control.carry.dirty > 0
    return TableDecision(
        name, TableAction.STREAM, reason, pending_window=pending, fence=table.restored, dirty=dirty, compare=compare
    )


def _decide_unlogged(facts: Facts, table: TableFacts, control: ControlRecord) -> TableDecision | None:
    """Changes that the stream does not carry. Changes of columns require a decision of an operator."""
    name, unlogged = table.task.table, table.unlogged
    rows = (*unlogged.rows, *_rows_of_log(table))
    if not unlogged.columns and not rows:
        return None
    what = f"{name} changed at the source in a way that its stream does not carry"
    policy = table.task.rule.schema_changes.over(facts.definition.schema_changes)
    chosen = policy.of(ChangeKind.NARROW) if unlogged.columns else OnChange.STOP
    auto = repairs_itself(facts.definition, table.task.rule) and not unlogged.columns
    if auto or chosen is OnChange.APPLY:
        return TableDecision(name, TableAction.RECONCILE, what)
    problem = Problem(
        "SRC100",
        what,
        where=name,
        found="; ".join((*unlogged.columns, *rows)),
        allowed="new columns with known values in older rows, dropped columns, statements that change no row",
        do=repair_line(facts.definition.name, name, table.task.rule),
        data=f"the copy is at window {control.window}; later changes are kept in the change log",
    )
    blocked = _blocked(name, problem)
    if chosen is not OnChange.ASK:
        return blocked
    question = copy_question(control, (*unlogged.columns, *rows))
    return replace(blocked, problem=asked(control, question), question=question)


def _rows_of_log(table: TableFacts) -> Iterator[str]:
    """What may have changed rows of a log of changes: no comparison shows whether it did."""
    if table.task.rule.history is not History.LOG:
        return
    if table.unlogged.doubted:
        yield table.unlogged.doubted
    if table.unlogged.rewritten and table.unlogged.recomputed:
        yield RECOMPUTED
    if table.unlogged.rewritten and table.unlogged.rejoined:
        yield "a partition was detached and attached again"


def _decide_with_hole(facts: Facts, table: TableFacts, hole: Hole) -> TableDecision:
    name = table.task.table
    what = f"the change log has a hole for {name} ({hole.cause})"
    if repairs_itself(facts.definition, table.task.rule) or hole.kind in REQUESTED:
        return TableDecision(name, TableAction.RECONCILE, what)
    problem = Problem(
        "LOG004",
        what,
        where=name,
        found=hole.detail or hole.cause,
        do=repair_line(facts.definition.name, name, table.task.rule),
        data="the copy is at the last window before the hole",
    )
    return _blocked(name, problem)


def _stopped(name: str, state: State, data: str) -> Problem:
    return Problem(STOPPED, state.reason, where=name, do=state.remedy, data=data)


def _blocked(name: str, problem: Problem, cause: Cause = Cause.TABLE) -> TableDecision:
    return TableDecision(name, TableAction.BLOCKED, problem.what, problem, cause=cause)
