"""The decision about one table in a run. Pure.

Rules by precedence: the status of the target table, its owner, then its consistency with change log, source and
definition.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.facts import Facts, LogFacts, TableFacts
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.change_log import REQUESTED, Hole, Manifest
from airflow_cdc_provider.core.spec.definition import Reconcile
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import TableState


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
    rows, and only a comparison shows whether they changed."""

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


def decide_table(facts: Facts, table: TableFacts) -> TableDecision:
    """The decision about one table. A requested ``resync`` has precedence over problems that a copy repairs."""
    name, control = table.task.table, table.task.control
    command = _pending_resync(facts, table)
    if table.problem:
        return TableDecision(name, TableAction.FAILING, table.problem.what, table.problem)
    if table.copied_by:
        return TableDecision(name, TableAction.COPYING, f"run {table.copied_by} is copying the table")
    if control is None:
        return _decide_without_control(facts, table, command)
    if problem := _check_owner(facts, table, control):
        cause = Cause.LOG if control.replicator == facts.definition.name else Cause.TABLE
        return TableDecision(name, TableAction.BLOCKED, problem.what, problem, cause=cause)
    if command:
        return TableDecision(name, TableAction.RECONCILE, "a resync was requested", command=command)
    return _decide_by_state(facts, table, control)


def first_pending_window(log: LogFacts, control: ControlRecord) -> int | None:
    """The first sealed window after the cursor with records of the table."""
    for number in range(control.window + 1, log.sealed + 1):
        manifest = log.manifests.get(number)
        if manifest and (part := manifest.tables.get(control.table)) and part.rows:
            return number
    return None


def first_hole(log: LogFacts, control: ControlRecord) -> Hole | None:
    """The first hole after the cursor. A window that did not capture the table is a hole, too."""
    for number in range(control.window + 1, log.sealed + 1):
        manifest = log.manifests.get(number)
        if manifest and (hole := hole_of(manifest, control.table, control.floor)):
            return hole
    return None


def last_hole(manifests: Iterable[Manifest], control: ControlRecord) -> int | None:
    """The last of these windows with a hole, up to the cursor. Earlier windows must not be applied again."""
    windows = (manifest.window for manifest in manifests if hole_of(manifest, control.table, control.floor))
    return max((window for window in windows if window <= control.window), default=None)


def hole_of(manifest: Manifest, table: str, floor: str) -> Hole | None:
    """The hole that a table with its last copy at ``floor`` has in a window. A hole at or below the floor is repaired
    by the copy. A hole of single rows (``ids``) is one of the whole table: rows that can be fetched are records of the
    window, not holes."""
    for hole in manifest.holes:
        if hole.table == table and not "" < hole.order_key <= floor:
            return hole
    if table not in manifest.tables:
        return Hole("uncaptured", table, "", detail=f"window {manifest.window} did not capture the table")
    return None


def _pending_resync(facts: Facts, table: TableFacts) -> str:
    """The id of the latest resync command that was not executed for this table yet; empty if there is none."""
    name, control = table.task.table, table.task.control
    done = control.state.command if control and control.state.name is TableState.REPLICATING else ""
    requested = [c.id for c in facts.commands if c.kind is CommandKind.RESYNC and c.names(name) and c.id != done]
    return requested[-1] if requested else ""


def _decide_without_control(facts: Facts, table: TableFacts, command: str) -> TableDecision:
    name = table.task.table
    if table.exists:
        problem = Problem(
            "TGT001",
            f"the target table of {name} exists but was not created by this replicator",
            where=table.task.target,
            found="a table without a control record",
            allowed="no table, or a table created by this replicator",
            do="rename the table, or set another `target` in the YAML",
            data="nothing was written to it",
        )
        return TableDecision(name, TableAction.BLOCKED, problem.what, problem)
    if table.known and not command:
        problem = Problem(
            "TGT002",
            f"the target table of {name} is missing",
            where=table.task.target,
            found="no table",
            allowed="the table that this replicator created",
            do=f"restore it, or copy it again: {resync_line(facts, name)}",
            data="its changes are kept in the change log",
        )
        return TableDecision(name, TableAction.BLOCKED, problem.what, problem)
    no_copies = all(other.task.control is None for other in facts.tables)
    if facts.stream.lost and not command and not no_copies:
        return TableDecision(name, TableAction.BLOCKED, facts.stream.lost.what, facts.stream.lost, cause=Cause.SOURCE)
    return TableDecision(name, TableAction.COPY, "the target has no copy yet", command=command)


def _check_owner(facts: Facts, table: TableFacts, control: ControlRecord) -> Problem | None:
    name = table.task.table
    if (control.replicator, control.table) != (facts.definition.name, name):
        return Problem(
            "STA006",
            f"the target table of {name} belongs to another replicator",
            where=table.task.target,
            found=f"{control.table} of replicator {control.replicator}",
            allowed=f"{name} of replicator {facts.definition.name}",
            do="set another `target` in the YAML, or rename the table",
            data="nothing was written to it",
        )
    if control.owner != facts.owner:
        return Problem(
            "STA007",
            f"{name} belongs to another state store",
            where=table.task.target,
            found=f"owner {control.owner}",
            allowed=f"owner {facts.owner}",
            do="stop the other Airflow, or restore its state store; only if no other Airflow writes this table: "
            f"airflow cdc state rebuild {facts.definition.name}",
            data="nothing was written to it",
        )
    return None


def _decide_by_state(facts: Facts, table: TableFacts, control: ControlRecord) -> TableDecision:
    name, state = table.task.table, control.state
    match state.name:
        case TableState.PAUSED:
            return TableDecision(name, TableAction.PAUSED, state.reason or "paused by an operator")
        case TableState.BLOCKED:
            problem = Problem(
                "TBL001", state.reason, where=name, do=state.remedy, data="the change log keeps its windows"
            )
            return TableDecision(name, TableAction.BLOCKED, state.reason, problem)
        case TableState.RESYNCING:
            return TableDecision(
                name, TableAction.RECONCILE, state.reason or "an earlier resync did not finish", command=state.command
            )
        case TableState.REWINDING:
            do = f"wait for the next run, which finishes it; if it does not: {resync_line(facts, name)}"
            problem = Problem("TBL002", f"a rewind of {name} did not finish", where=name, do=do)
            return TableDecision(name, TableAction.BLOCKED, problem.what, problem)
        case _:
            return _decide_replicating(facts, table, control)


def _decide_replicating(facts: Facts, table: TableFacts, control: ControlRecord) -> TableDecision:
    name = table.task.table
    if problem := _check_log(facts, name, control):
        return TableDecision(name, TableAction.BLOCKED, problem.what, problem, cause=Cause.LOG)
    if control.source_identity and control.source_identity != facts.source_identity:
        problem = _source_changed(facts, name, control)
        return TableDecision(name, TableAction.BLOCKED, problem.what, problem, cause=Cause.SOURCE)
    if control.definition_sha256 != table.task.definition_sha256:
        problem = _definition_changed(facts, name)
        return TableDecision(name, TableAction.BLOCKED, problem.what, problem)
    if problem := _check_retention(facts, name, control):
        return TableDecision(name, TableAction.BLOCKED, problem.what, problem)
    if problem := facts.stream.outside.get(name):
        return TableDecision(name, TableAction.BLOCKED, problem.what, problem)
    if hole := first_hole(facts.log, control):
        return _decide_with_hole(facts, name, hole)
    if decision := _decide_unlogged(facts, table, control):
        return decision
    pending = first_pending_window(facts.log, control)
    if facts.stream.lost and pending is None:
        auto = facts.definition.source.reconcile is Reconcile.AUTO
        if not auto:
            return TableDecision(
                name, TableAction.BLOCKED, facts.stream.lost.what, facts.stream.lost, cause=Cause.SOURCE
            )
        return TableDecision(name, TableAction.RECONCILE, facts.stream.lost.what)
    reason = f"windows {pending} to {facts.log.sealed} are not applied yet" if pending else ""
    compare = table.unlogged.rewritten
    reason = reason or ("its rows were rewritten at the source" if compare else "")
    dirty = control.carry.dirty > 0
    return TableDecision(
        name, TableAction.STREAM, reason, pending_window=pending, fence=table.restored, dirty=dirty, compare=compare
    )


def _decide_unlogged(facts: Facts, table: TableFacts, control: ControlRecord) -> TableDecision | None:
    """Changes that the stream does not carry. Changes of columns require a decision of an operator."""
    name, unlogged = table.task.table, table.unlogged
    if not unlogged.columns and not unlogged.rows:
        return None
    what = f"{name} changed at the source in a way that its stream does not carry"
    if facts.definition.source.reconcile is Reconcile.AUTO and not unlogged.columns:
        return TableDecision(name, TableAction.RECONCILE, what)
    problem = Problem(
        "SRC100",
        what,
        where=name,
        found="; ".join((*unlogged.columns, *unlogged.rows)),
        allowed="new columns with known values in older rows, dropped columns, statements that change no row",
        do=resync_line(facts, name),
        data=f"the copy is at window {control.window}; later changes are kept in the change log",
    )
    return TableDecision(name, TableAction.BLOCKED, what, problem)


def _decide_with_hole(facts: Facts, name: str, hole: Hole) -> TableDecision:
    what = f"the change log has a hole for {name} ({hole.kind})"
    auto = facts.definition.source.reconcile is Reconcile.AUTO and hole.kind != "schema"
    if auto or hole.kind in REQUESTED:
        return TableDecision(name, TableAction.RECONCILE, what)
    problem = Problem(
        "LOG004",
        what,
        where=name,
        found=hole.detail or hole.kind,
        do=resync_line(facts, name),
        data="the copy is at the last window before the hole",
    )
    return TableDecision(name, TableAction.BLOCKED, what, problem)


def _check_log(facts: Facts, name: str, control: ControlRecord) -> Problem | None:
    """Whether the control record was written from this change log."""
    log = facts.log
    data = "nothing was read, written or acknowledged"
    do = f"restore the staging folder, or copy again: {resync_line(facts, name)}"
    if control.log_id != log.log_id:
        return Problem(
            "LOG001",
            f"{name} was written from another change log",
            where=facts.definition.staging.location,
            found=f"log {log.log_id}",
            allowed=f"log {control.log_id}",
            do=do,
            data=data,
        )
    if control.window > log.sealed:
        return Problem(
            "LOG002",
            f"the change log ends before the cursor of {name}",
            where=facts.definition.staging.location,
            found=f"last sealed window {log.sealed}",
            allowed=f"window {control.window} or later",
            do=do,
            data=data,
        )
    expected = control.manifest_sha256 if log.oldest <= control.window else ""
    if expected and log.sha256.get(control.window) != expected:
        return Problem(
            "LOG003",
            f"window {control.window} of the change log differs from the one that {name} was written from",
            where=facts.definition.staging.location,
            found=f"manifest {log.sha256.get(control.window, '')[:12] or 'missing'}",
            allowed=f"manifest {expected[:12]}",
            do=do,
            data=data,
        )
    return None


def _check_retention(facts: Facts, name: str, control: ControlRecord) -> Problem | None:
    if facts.log.oldest > control.window + 1:
        return Problem(
            "LOG005",
            f"the change log does not reach back to the cursor of {name}",
            where=facts.definition.staging.location,
            found=f"oldest window {facts.log.oldest}",
            allowed=f"window {control.window + 1}",
            do=resync_line(facts, name),
            data="the table is at its cursor",
        )
    return None


def _source_changed(facts: Facts, name: str, control: ControlRecord) -> Problem:
    changed = [
        f"{key} {control.source_identity.get(key, 'unknown')} → {facts.source_identity.get(key, 'unknown')}"
        for key in sorted({*control.source_identity, *facts.source_identity})
        if control.source_identity.get(key) != facts.source_identity.get(key)
    ]
    return Problem(
        "SRC010",
        f"the source differs from the one that {name} was copied from",
        where=f"connection {facts.definition.source.connection}",
        found=", ".join(changed),
        allowed="the source that the table was copied from",
        do=f"restore the connection, or copy again from the new source: {resync_line(facts, name)}",
        data="the copy is unchanged; nothing was acknowledged",
    )


def _definition_changed(facts: Facts, name: str) -> Problem:
    return Problem(
        "DEF040",
        f"the definition of {name} changed after it was copied",
        where=f"{facts.definition.name}, table {name}",
        found="another source, columns, where, key, on_delete or on_unrepresentable",
        do=f"revert the change, or copy again: {resync_line(facts, name)}",
        data="the copy is unchanged; later changes are kept in the change log",
    )


def resync_line(facts: Facts, table: str) -> str:
    return f"airflow cdc resync {facts.definition.name} --table {table}"
