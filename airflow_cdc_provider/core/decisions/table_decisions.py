"""What a run may do with one table, and why not more. Pure: facts in, verdict out.

The order of the rules is the order of what matters: what stands in the target first, then whose it is, then whether
the log and the definition still fit it.
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
    """``stream`` takes changes; ``copy`` is the first copy, ``reconcile`` a further one; ``copying``: another run does
    that now. ``paused``, ``blocked`` and ``failing`` tables take nothing in this run."""

    STREAM = "stream"
    COPY = "copy"
    RECONCILE = "reconcile"
    COPYING = "copying"
    PAUSED = "paused"
    BLOCKED = "blocked"
    FAILING = "failing"


class Cause(StrEnum):
    """Whose trouble it is. That of the source or the log may be every table's."""

    TABLE = "table"
    SOURCE = "source"
    LOG = "log"


@dataclass(frozen=True)
class TableDecision:
    """``behind`` is the first sealed window after the cursor that holds records of the table; None where there is none.
    ``dirty``: rows wait to be fetched from the source. ``command`` is the request that asked for the move. ``fence``:
    the table was taken back by somebody, so a fence must be raised before anything else. ``compare``: the rows were
    rewritten at the source, and only a comparison shows whether they are what they were."""

    table: str
    move: TableAction
    reason: str = ""
    problem: Problem | None = None
    behind: int | None = None
    command: str = ""
    cause: Cause = Cause.TABLE
    fence: bool = False
    dirty: bool = False
    compare: bool = False


def decide_table(facts: Facts, table: TableFacts) -> TableDecision:
    """The verdict on one table. A pending ``resync`` of it overrules what a copy would cure."""
    name, control = table.task.table, table.task.control
    command = _resync(facts, table)
    if table.problem:
        return TableDecision(name, TableAction.FAILING, table.problem.what, table.problem)
    if table.copied_by:
        return TableDecision(name, TableAction.COPYING, f"run {table.copied_by} is copying it")
    if control is None:
        return _without_control(facts, table, command)
    if foreign := _foreign(facts, table, control):
        ours = control.replicator == facts.definition.name
        return TableDecision(name, TableAction.BLOCKED, foreign.what, foreign, cause=Cause.LOG if ours else Cause.TABLE)
    if command:
        return TableDecision(name, TableAction.RECONCILE, "a resync was requested", command=command)
    return _by_state(facts, table, control)


def first_pending_window(log: LogFacts, control: ControlRecord) -> int | None:
    """The first sealed window after the cursor that holds records of the table."""
    for number in range(control.window + 1, log.sealed + 1):
        manifest = log.manifests.get(number)
        if manifest and (piece := manifest.tables.get(control.table)) and piece.rows:
            return number
    return None


def first_hole(log: LogFacts, control: ControlRecord) -> Hole | None:
    """The hole of the first window after the cursor that has one: the window says so itself, or it did not capture the
    table."""
    for number in range(control.window + 1, log.sealed + 1):
        manifest = log.manifests.get(number)
        if manifest and (hole := hole_of(manifest, control.table, control.floor)):
            return hole
    return None


def last_hole(manifests: Iterable[Manifest], control: ControlRecord) -> int | None:
    """The last of these windows, up to the cursor, that has one: what lies before it says nothing of the table now."""
    holed = (one.window for one in manifests if hole_of(one, control.table, control.floor))
    return max((window for window in holed if window <= control.window), default=None)


def hole_of(manifest: Manifest, table: str, floor: str) -> Hole | None:
    """Why a table whose last copy stands at ``floor`` may not step over a window. A hole up to the floor is filled by
    the copy. One that names single rows (``ids``) counts for the whole table, too: rows that the source can be asked
    for stand in the records of the window, not here."""
    for hole in manifest.holes:
        if hole.table == table and not "" < hole.order_key <= floor:
            return hole
    if table not in manifest.tables:
        return Hole("uncaptured", table, "", detail=f"window {manifest.window} did not capture the table")
    return None


def _resync(facts: Facts, table: TableFacts) -> str:
    """The latest request for a new copy that this table has not had yet."""
    name, control = table.task.table, table.task.control
    done = control.state.command if control and control.state.name is TableState.REPLICATING else ""
    asked = [c.id for c in facts.commands if c.kind is CommandKind.RESYNC and c.names(name) and c.id != done]
    return asked[-1] if asked else ""


def _without_control(facts: Facts, table: TableFacts, command: str) -> TableDecision:
    name = table.task.table
    if table.exists:
        problem = Problem(
            "TGT001",
            f"the target table of {name} is not ours",
            where=table.task.target,
            found="a table without a control record",
            allowed="no table, or one made by this replicator",
            do="move the table away, or give another `target` in the YAML",
            data="nothing was written to it",
        )
        return TableDecision(name, TableAction.BLOCKED, problem.what, problem)
    if table.known and not command:
        problem = Problem(
            "TGT002",
            f"the target table of {name} is gone",
            where=table.task.target,
            found="no table",
            allowed="the table this replicator wrote",
            do=f"put it back, or copy it again: {resync_line(facts, name)}",
            data="its changes are kept in the change log",
        )
        return TableDecision(name, TableAction.BLOCKED, problem.what, problem)
    nothing_to_lose = all(other.task.control is None for other in facts.tables)
    if facts.stream.lost and not command and not nothing_to_lose:
        return TableDecision(name, TableAction.BLOCKED, facts.stream.lost.what, facts.stream.lost, cause=Cause.SOURCE)
    return TableDecision(name, TableAction.COPY, "the target holds no copy yet", command=command)


def _foreign(facts: Facts, table: TableFacts, control: ControlRecord) -> Problem | None:
    name = table.task.table
    if (control.replicator, control.table) != (facts.definition.name, name):
        return Problem(
            "STA006",
            f"the target table of {name} belongs to another replicator",
            where=table.task.target,
            found=f"{control.table} of replicator {control.replicator}",
            allowed=f"{name} of replicator {facts.definition.name}",
            do="give another `target` in the YAML, or move the table away",
            data="nothing was written to it",
        )
    if control.owner != facts.owner:
        return Problem(
            "STA007",
            f"{name} is written by another state store",
            where=table.task.target,
            found=f"owner {control.owner}",
            allowed=f"owner {facts.owner}",
            do="stop the other Airflow, or bring its state store back; only when no other Airflow writes this table: "
            f"airflow cdc state rebuild {facts.definition.name}",
            data="nothing was written to it",
        )
    return None


def _by_state(facts: Facts, table: TableFacts, control: ControlRecord) -> TableDecision:
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
                name, TableAction.RECONCILE, state.reason or "an earlier resync did not end", command=state.command
            )
        case TableState.REWINDING:
            do = f"nothing: the next run ends it; if that lasts: {resync_line(facts, name)}"
            problem = Problem("TBL002", f"a rewind of {name} did not end", where=name, do=do)
            return TableDecision(name, TableAction.BLOCKED, problem.what, problem)
        case _:
            return _moving(facts, table, control)


def _moving(facts: Facts, table: TableFacts, control: ControlRecord) -> TableDecision:
    name = table.task.table
    if problem := _other_log(facts, name, control):
        return TableDecision(name, TableAction.BLOCKED, problem.what, problem, cause=Cause.LOG)
    if control.source_identity and control.source_identity != facts.source_identity:
        problem = _other_source(facts, name, control)
        return TableDecision(name, TableAction.BLOCKED, problem.what, problem, cause=Cause.SOURCE)
    if control.definition_sha256 != table.task.definition_sha256:
        problem = _other_definition(facts, name)
        return TableDecision(name, TableAction.BLOCKED, problem.what, problem)
    if problem := _out_of_reach(facts, name, control):
        return TableDecision(name, TableAction.BLOCKED, problem.what, problem)
    if problem := facts.stream.outside.get(name):
        return TableDecision(name, TableAction.BLOCKED, problem.what, problem)
    if hole := first_hole(facts.log, control):
        return _with_hole(facts, name, hole)
    if unseen := _unseen(facts, table, control):
        return unseen
    behind = first_pending_window(facts.log, control)
    if facts.stream.lost and behind is None:
        auto = facts.definition.source.reconcile is Reconcile.AUTO
        if not auto:
            return TableDecision(
                name, TableAction.BLOCKED, facts.stream.lost.what, facts.stream.lost, cause=Cause.SOURCE
            )
        return TableDecision(name, TableAction.RECONCILE, facts.stream.lost.what)
    reason = f"window {behind} to {facts.log.sealed} not applied yet" if behind else ""
    compare = table.unseen.rewritten
    reason = reason or ("its rows were rewritten at the source" if compare else "")
    dirty = control.carry.dirty > 0
    return TableDecision(
        name, TableAction.STREAM, reason, behind=behind, fence=table.restored, dirty=dirty, compare=compare
    )


def _unseen(facts: Facts, table: TableFacts, control: ControlRecord) -> TableDecision | None:
    """A table that its stream does not lead to what it is now. What became of columns, people decide."""
    name, unseen = table.task.table, table.unseen
    if not unseen.columns and not unseen.rows:
        return None
    what = f"{name} changed at the source in a way that its stream does not carry"
    if facts.definition.source.reconcile is Reconcile.AUTO and not unseen.columns:
        return TableDecision(name, TableAction.RECONCILE, what)
    problem = Problem(
        "SRC100",
        what,
        where=name,
        found="; ".join((*unseen.columns, *unseen.rows)),
        allowed="new columns whose values in older rows are known, dropped columns, statements that change no row",
        do=resync_line(facts, name),
        data=f"the copy stands at window {control.window}; later changes are kept in the change log",
    )
    return TableDecision(name, TableAction.BLOCKED, what, problem)


def _with_hole(facts: Facts, name: str, hole: Hole) -> TableDecision:
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
        data="the copy stands before the hole",
    )
    return TableDecision(name, TableAction.BLOCKED, what, problem)


def _other_log(facts: Facts, name: str, control: ControlRecord) -> Problem | None:
    """The control record must have been written from this very log."""
    log = facts.log
    data = "nothing was read, written or acknowledged"
    if control.log_id != log.log_id:
        return Problem(
            "LOG001",
            f"{name} was written from another change log",
            where=facts.definition.staging.location,
            found=f"log {log.log_id}",
            allowed=f"log {control.log_id}",
            do=f"bring the staging folder back, or start anew: {resync_line(facts, name)}",
            data=data,
        )
    if control.window > log.sealed:
        return Problem(
            "LOG002",
            f"the change log ends before the cursor of {name}",
            where=facts.definition.staging.location,
            found=f"last sealed window {log.sealed}",
            allowed=f"window {control.window} or later",
            do=f"bring the staging folder back, or start anew: {resync_line(facts, name)}",
            data=data,
        )
    named = control.manifest_sha256 if log.oldest <= control.window else ""
    if named and log.sha256.get(control.window) != named:
        return Problem(
            "LOG003",
            f"window {control.window} of the change log is not the one {name} was written from",
            where=facts.definition.staging.location,
            found=f"manifest {log.sha256.get(control.window, '')[:12] or 'missing'}",
            allowed=f"manifest {named[:12]}",
            do=f"bring the staging folder back, or start anew: {resync_line(facts, name)}",
            data=data,
        )
    return None


def _out_of_reach(facts: Facts, name: str, control: ControlRecord) -> Problem | None:
    if facts.log.oldest > control.window + 1:
        return Problem(
            "LOG005",
            f"the change log does not reach back to the cursor of {name}",
            where=facts.definition.staging.location,
            found=f"oldest window {facts.log.oldest}",
            allowed=f"window {control.window + 1}",
            do=resync_line(facts, name),
            data="the table stands at its cursor",
        )
    return None


def _other_source(facts: Facts, name: str, control: ControlRecord) -> Problem:
    changed = [
        f"{key} {control.source_identity.get(key, 'unknown')} → {facts.source_identity.get(key, 'unknown')}"
        for key in sorted({*control.source_identity, *facts.source_identity})
        if control.source_identity.get(key) != facts.source_identity.get(key)
    ]
    return Problem(
        "SRC010",
        f"the source is not the one {name} was copied from",
        where=f"connection {facts.definition.source.connection}",
        found=", ".join(changed),
        allowed="the source the table was copied from",
        do=f"point the connection back, or copy again from the new source: {resync_line(facts, name)}",
        data="the copy stands as it was; nothing was acknowledged",
    )


def _other_definition(facts: Facts, name: str) -> Problem:
    return Problem(
        "DEF040",
        f"the YAML says something else of {name} than when it was copied",
        where=f"{facts.definition.name}, table {name}",
        found="another source, columns, where, key or on_delete",
        do=f"take the change back, or copy again: {resync_line(facts, name)}",
        data="the copy stands as it was; its changes are kept in the change log",
    )


def resync_line(facts: Facts, table: str) -> str:
    return f"airflow cdc resync {facts.definition.name} --table {table}"
