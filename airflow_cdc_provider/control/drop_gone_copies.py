"""Drops the copies of tables that the source dropped, where ``dropped_tables: drop`` says so.

The decision is written first, with the identity of the copy: a table that is dropped in part no longer shows to which
replicator it belongs. Then the copy is fenced, so that nothing commits to it any more. The state ``dropped`` comes
last, so that a run that dies is repeated by the next one.
"""

from __future__ import annotations

from collections.abc import Iterable

from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.replicator import LogInfo, Replicator
from airflow_cdc_provider.core.decisions.listed_tables import GoneTable
from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, dropped_identity, new_decision
from airflow_cdc_provider.core.errors import UNREADABLE, Fenced
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.spec.table_policy import OnDroppedTable
from airflow_cdc_provider.core.table.copies import target_of_copy
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.targets.target import ReleasesTables


def drop_gone_copies(replicator: Replicator, gone: Iterable[GoneTable], run_id: str, log_info: LogInfo) -> None:
    """A target that cannot be read delays its copies to the next run."""
    for one in gone:
        if one.policy is OnDroppedTable.DROP:
            try:
                _drop(replicator, one, run_id, log_info)
            except UNREADABLE as error:
                log_info(f"{one.table} is not dropped in this run: {error}")


def _drop(replicator: Replicator, gone: GoneTable, run_id: str, log_info: LogInfo) -> None:
    target = replicator.targets.of(gone.table)
    if not isinstance(target, ReleasesTables):
        kind = replicator.definition.target_named(target_of_copy(gone.table)).type
        log_info(f"{gone.table}: the target type {kind} drops no table")
        return
    identity = _decided(replicator, gone, run_id, log_info)
    if identity is None:
        return
    target.drop(gone.target, identity)
    failpoint("drop.dropped")
    target.release(gone.table, gone.target)
    log_info(f"{gone.table}: the source dropped it; dropped {target.locate(gone.target)}")


def _decided(replicator: Replicator, gone: GoneTable, run_id: str, log_info: LogInfo) -> str | None:
    """The identity of the copy to drop, which is fenced; None if there is none of this replicator."""
    current = replicator.targets.state(gone.table, gone.target)
    control, name = current.control, replicator.name
    if control is None:
        return dropped_identity(replicator.log.decisions(), gone.table)
    if (control.replicator, control.owner) != (name, replicator.state.owner()):
        return None
    if dropped_identity(replicator.log.decisions(), gone.table) != current.identity:
        replicator.state.write_audit(name, run_id, "drop copy", {"table": gone.table, "target": gone.target})
        reason = "dropped_tables: drop"
        decision = new_decision(
            DecisionKind.DROP_COPY, name, gone.table, run_id, "drop", reason=reason, identity=current.identity
        )
        replicator.log.write_decision(decision)
        failpoint("drop.decided")
    state = State(TableState.PAUSED, utc_now(), "the source dropped the table", set_by=run_id)
    try:
        commit_fence(replicator, gone.table, gone.target, current, run_id, state)
    except Fenced as error:
        log_info(str(error))
        return None
    failpoint("drop.fenced")
    return current.identity
