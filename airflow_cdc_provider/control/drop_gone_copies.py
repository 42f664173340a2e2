"""Drops the copies of tables that the source dropped, where ``dropped_tables: drop`` says so.

The decision is written first. Then the copy is fenced, so that nothing commits to it any more: with that the drop has
begun, and goes on in later runs if this one dies, also where the source lists the table again by then.

Only the source of the copy says that its table is gone: another one, or one without the stream of the replicator, may
never have had it.
"""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.connectors.source_features import ConfirmsDrops
from airflow_cdc_provider.control.begun_drops import remove_copy
from airflow_cdc_provider.control.drop_marks import DropMark, marked_copies
from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.replicator import LogInfo, Replicator
from airflow_cdc_provider.control.table_rows import COPY_DROPPED
from airflow_cdc_provider.core.decisions.facts import Facts
from airflow_cdc_provider.core.decisions.listed_tables import GoneTable, gone_problem, kept_in_part, not_dropped
from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, new_decision
from airflow_cdc_provider.core.decisions.table_checks import check_source, check_store
from airflow_cdc_provider.core.errors import UNREADABLE, Blocked, CdcError, Fenced, ForeignTarget, Problem
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.spec.table_policy import OnDroppedTable
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.copies import source_table, target_of_copy
from airflow_cdc_provider.core.table.states import dropping, drops_copy
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.targets.target import ReleasesTables, TargetState


def drop_gone_copies(replicator: Replicator, facts: Facts, log_info: LogInfo) -> tuple[GoneTable, ...]:
    """The tables with what has become of their copies. A target that cannot be read delays its copies to the next
    run."""
    marked = marked_copies(replicator, [one.table for one in facts.gone])
    return tuple(
        _drop_gone(replicator, facts, one, marked.get(one.table), log_info)
        if one.policy is OnDroppedTable.DROP
        else replace(one, left=_kept_in_part(one) if one.table in marked else None)
        for one in facts.gone
    )


def _kept_in_part(gone: GoneTable) -> Problem:
    return kept_in_part(gone.table, gone.target, "a mark in staging")


def _drop_gone(
    replicator: Replicator, facts: Facts, gone: GoneTable, mark: DropMark | None, log_info: LogInfo
) -> GoneTable:
    try:
        return replace(gone, outcome=_drop(replicator, facts, gone, mark, log_info))
    except (Blocked, Fenced, *UNREADABLE) as error:
        log_info(f"{gone.table} is not dropped in this run: {error}")
        return replace(gone, left=_why_left(gone, error))


def _why_left(gone: GoneTable, error: CdcError) -> Problem:
    return error.problems[0] if isinstance(error, Blocked) else not_dropped(gone.table, gone.target, str(error))


def _drop(replicator: Replicator, facts: Facts, gone: GoneTable, mark: DropMark | None, log_info: LogInfo) -> str:
    """What has become of the copy. Raises Blocked, Fenced, TargetUnavailable and CheckFailed if it stays."""
    target = replicator.targets.of(gone.table)
    if not isinstance(target, ReleasesTables):
        kind = replicator.definition.target_named(target_of_copy(gone.table)).type
        log_info(f"{gone.table}: the target type {kind} drops no table")
        return f"the source dropped it; its copy is kept: the target type {kind} drops no table"
    begun = _begun(replicator, facts, gone, mark)
    if begun is None:
        return "the source dropped it; the target has no copy of it"
    remove_copy(replicator, gone.table, gone.target, begun)
    log_info(f"{gone.table}: the source dropped it; dropped {target.locate(gone.target)}")
    return COPY_DROPPED


def _begun(replicator: Replicator, facts: Facts, gone: GoneTable, mark: DropMark | None) -> DropMark | None:
    """The copy whose drop has begun, by now at the latest; None if there is no copy of this replicator. ``mark``: in
    staging."""
    try:
        current = replicator.targets.state(gone.table, gone.target)
    except UNREADABLE:
        if mark is None:
            raise
        return mark
    control = current.control
    if control is None or (mark is not None and mark.is_of(current)):
        return mark
    if control.replicator != replicator.name:
        return None
    if problem := check_store(replicator.name, gone.table, gone.target, control, facts.owner):
        raise ForeignTarget(problem)
    begun = control if drops_copy(control.state) else _begin(replicator, facts, gone, current, control)
    return DropMark(current.identity, begun.fence)


def _begin(
    replicator: Replicator, facts: Facts, gone: GoneTable, current: TargetState, control: ControlRecord
) -> ControlRecord:
    """Decide the drop, and fence the copy. Raises Blocked if it must stay."""
    if problem := _why_it_stays(replicator, facts, gone, current, control):
        raise Blocked(problem)
    name, run_id = replicator.name, facts.run_id
    replicator.state.write_audit(name, run_id, "drop copy", {"table": gone.table, "target": gone.target})
    details = {"reason": "dropped_tables: drop", "identity": current.identity, "state": control.state}
    decision = new_decision(DecisionKind.DROP_COPY, name, gone.table, run_id, "drop", **details)
    replicator.log.write_decision(decision)
    failpoint("drop.decided")
    _read_next_time(replicator, gone.table)
    fenced = commit_fence(replicator, gone.table, gone.target, current, run_id, dropping(utc_now(), run_id))
    failpoint("drop.fenced")
    return fenced


def _why_it_stays(
    replicator: Replicator, facts: Facts, gone: GoneTable, current: TargetState, control: ControlRecord
) -> Problem | None:
    """``control``: names the table that was copied. The index, by which it is gone, may not know it yet."""
    source = replicator.source
    if problem := check_source(facts, gone.table, control) or facts.stream.lost:
        return problem
    if current.shared:
        return _shared(gone)
    table = source_table(gone.table)
    return gone_problem(gone, source.is_dropped(table, control.identity) if isinstance(source, ConfirmsDrops) else None)


def _shared(gone: GoneTable) -> Problem:
    return Problem(
        "DEF085",
        f"the copy of {gone.table} is not dropped: that would take the rows of other tables with it",
        where=gone.target,
        found="a table with the rows of several source tables",
        allowed="a table of its own",
        do="set `dropped_tables: keep` for it; delete its rows in the target if they are not wanted",
        table=source_table(gone.table),
    )


def _read_next_time(replicator: Replicator, table: str) -> None:
    """Otherwise a table that is back by then may be taken from the index, as it was before the fence."""
    replicator.state.change_tables(
        replicator.name, lambda rows: [replace(rows[table], seen_at="")] if table in rows else []
    )
