"""Drops the copies of tables that the source dropped, where ``dropped_tables: drop`` says so.

The decision is written first, with the identity of the copy: a table that is dropped in part no longer shows to which
replicator it belongs. Then the copy is fenced, so that nothing commits to it any more. The state ``dropped`` comes
last, so that a run that dies is repeated by the next one, also if the source lists the table again by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.replicator import LogInfo, Replicator
from airflow_cdc_provider.control.table_rows import COPY_DROPPED, dropped_row
from airflow_cdc_provider.core.decisions.facts import Facts, TableFacts
from airflow_cdc_provider.core.decisions.listed_tables import NOT_DROPPED, GoneTable
from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, dropped_identity, new_decision
from airflow_cdc_provider.core.decisions.table_checks import check_store
from airflow_cdc_provider.core.errors import UNREADABLE, CdcError, Fenced, ForeignTarget, Problem
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.spec.table_policy import OnDroppedTable
from airflow_cdc_provider.core.table.copies import source_table, target_of_copy
from airflow_cdc_provider.core.table.states import dropping, drops_copy
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.targets.target import ReleasesTables


@dataclass(frozen=True)
class BegunDrop:
    """A copy that an earlier run has begun to drop, of a table that the source lists again."""

    table: str
    target: str
    identity: str


def drop_gone_copies(
    replicator: Replicator, gone: Iterable[GoneTable], run_id: str, log_info: LogInfo
) -> tuple[GoneTable, ...]:
    """The tables with what has become of their copies. A target that cannot be read delays its copies to the next
    run."""
    return tuple(
        _drop_gone(replicator, one, run_id, log_info) if one.policy is OnDroppedTable.DROP else one for one in gone
    )


def _drop_gone(replicator: Replicator, gone: GoneTable, run_id: str, log_info: LogInfo) -> GoneTable:
    try:
        return replace(gone, outcome=_drop(replicator, gone, run_id, log_info))
    except (ForeignTarget, Fenced, *UNREADABLE) as error:
        log_info(f"{gone.table} is not dropped in this run: {error}")
        return replace(gone, left=_why_left(gone, error))


def _why_left(gone: GoneTable, error: CdcError) -> Problem:
    if isinstance(error, ForeignTarget):
        return error.problems[0]
    return Problem(
        NOT_DROPPED,
        f"the copy of {gone.table}, which the source dropped, is not dropped yet",
        where=gone.target,
        found=str(error),
        do="nothing, if the target answers again: the next run drops it",
        table=source_table(gone.table),
    )


def _drop(replicator: Replicator, gone: GoneTable, run_id: str, log_info: LogInfo) -> str:
    """What has become of the copy. Raises Fenced, ForeignTarget, TargetUnavailable and CheckFailed if it stays."""
    target = replicator.targets.of(gone.table)
    if not isinstance(target, ReleasesTables):
        kind = replicator.definition.target_named(target_of_copy(gone.table)).type
        log_info(f"{gone.table}: the target type {kind} drops no table")
        return f"the source dropped it; its copy is kept: the target type {kind} drops no table"
    identity = _decided(replicator, gone, run_id)
    if identity is None:
        return "the source dropped it; the target has no copy of it"
    _remove(target, gone.table, gone.target, identity)
    log_info(f"{gone.table}: the source dropped it; dropped {target.locate(gone.target)}")
    return COPY_DROPPED


def _remove(target: ReleasesTables, table: str, target_table: str, identity: str) -> None:
    target.drop(target_table, identity)
    failpoint("drop.dropped")
    target.release(table, target_table)


def _decided(replicator: Replicator, gone: GoneTable, run_id: str) -> str | None:
    """The identity of the copy to drop, which is fenced; None if there is none of this replicator. A copy whose drop
    has begun may be unreadable."""
    try:
        current = replicator.targets.state(gone.table, gone.target)
    except UNREADABLE:
        if (begun := _begun_identity(replicator, gone.table)) is None:
            raise
        return begun
    control, name = current.control, replicator.name
    if control is None:
        return dropped_identity(replicator.log.decisions(), gone.table)
    if control.replicator != name:
        return None
    if problem := check_store(name, gone.table, gone.target, control, replicator.state.owner()):
        raise ForeignTarget(problem)
    if dropped_identity(replicator.log.decisions(), gone.table) != current.identity:
        replicator.state.write_audit(name, run_id, "drop copy", {"table": gone.table, "target": gone.target})
        reason = "dropped_tables: drop"
        decision = new_decision(
            DecisionKind.DROP_COPY, name, gone.table, run_id, "drop", reason=reason, identity=current.identity
        )
        replicator.log.write_decision(decision)
        failpoint("drop.decided")
    _read_next_time(replicator, gone.table)
    commit_fence(replicator, gone.table, gone.target, current, run_id, dropping(utc_now(), run_id))
    failpoint("drop.fenced")
    return current.identity


def _read_next_time(replicator: Replicator, table: str) -> None:
    """Otherwise a table that is back by then may be taken from the index, as it was before the fence."""
    replicator.state.change_tables(
        replicator.name, lambda rows: [replace(rows[table], seen_at="")] if table in rows else []
    )


def _begun_identity(replicator: Replicator, table: str) -> str | None:
    """The identity of a copy whose drop has begun: its last commit is the fence of a drop."""
    control = replicator.log.newest_control(table)
    if control is None or not drops_copy(control.state):
        return None
    return dropped_identity(replicator.log.decisions(), table)


def begun_drops(replicator: Replicator, facts: Facts) -> Iterator[BegunDrop]:
    """Of the tables of a run. A copy that cannot be read is one if its drop has begun."""
    for table in facts.tables:
        task = table.task
        identity = _begun_identity(replicator, task.table) if _may_be_begun(facts, table) else None
        if identity is not None:
            yield BegunDrop(task.table, task.target, identity)


def _may_be_begun(facts: Facts, table: TableFacts) -> bool:
    control = table.task.control
    if table.copied_by:
        return False
    if table.problem:
        return True
    if control is None:
        return table.known
    own = (control.replicator, control.owner) == (facts.definition.name, facts.owner)
    return own and drops_copy(control.state)


def finish_begun_drops(replicator: Replicator, facts: Facts, log_info: LogInfo) -> bool:
    """Finish the drops that an earlier run began, of tables that the source lists again, so that these are copied anew.
    Returns whether there was any."""
    finished = False
    for begun in begun_drops(replicator, facts):
        target = replicator.targets.of(begun.table)
        if not isinstance(target, ReleasesTables):
            continue
        try:
            _remove(target, begun.table, begun.target, begun.identity)
        except UNREADABLE as error:
            log_info(f"{begun.table} is not copied anew in this run: {error}")
            continue
        _write_dropped(replicator, begun.table)
        log_info(f"{begun.table}: the source had dropped it; dropped {target.locate(begun.target)}")
        finished = True
    return finished


def _write_dropped(replicator: Replicator, table: str) -> None:
    at = utc_now()
    replicator.state.change_tables(
        replicator.name, lambda rows: [dropped_row(rows[table], COPY_DROPPED, "", at)] if table in rows else []
    )
