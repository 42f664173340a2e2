"""Deletes a replicator. Its copies are fenced first, so that nothing commits any more; its rows in the state store go
last. A command that dies anywhere is finished by its repetition, which needs no YAML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from airflow_cdc_provider.connectors.source_features import CreatesObjects
from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.footprint import every_table, own_copies
from airflow_cdc_provider.control.replicator import LogInfo, Replicator
from airflow_cdc_provider.control.replicator_changes import check_holder, record
from airflow_cdc_provider.core.decisions.replicator_changes import OwnedTable, ReplicatorChange, require_holder
from airflow_cdc_provider.core.errors import CdcError, Fenced
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.table.copies import target_of_copy
from airflow_cdc_provider.core.table.source_names import in_shell
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.targets.target import ReleasesTables


def delete_replicator(
    replicator: Replicator, change: ReplicatorChange, others: Sequence[Source], log_info: LogInfo
) -> None:
    """``change``: from the entry; all runs have ended. ``others``: the sources of other replicators on the connection
    of the source.

    A source that does not answer delays no other part. Then its error is raised, and the deletion stays unfinished.
    Raises Fenced (CMD034) if another process has taken it over."""
    state, name = replicator.state, replicator.name

    def check() -> None:
        check_holder(state, name, change)

    failpoint("delete.begun")
    change = _fence_copies(replicator, change, check)
    log_info(f"fenced {len(change.owned or ())} copies")
    check()
    source_error = _leave_source(replicator, others, check, log_info)
    failpoint("delete.source")
    _leave_targets(replicator, change, check, log_info)
    check()
    replicator.log.store.delete("")
    log_info(f"removed {replicator.log.store.root}")
    failpoint("delete.staging")
    if source_error is not None:
        raise source_error
    check()
    detail = {"drop_copies": change.drop_copies, "copies": [copy.target for copy in change.owned or ()]}
    state.write_audit(name, change.requested_by, "delete", detail)
    failpoint("delete.audited")
    done = replace(change, done_at=utc_now())
    state.replicators.remove_rows(name, lambda entry: replace(require_holder(entry, name, change), change=done))


def _fence_copies(replicator: Replicator, change: ReplicatorChange, check: Callable[[], None]) -> ReplicatorChange:
    """The change with the copies, which are paused from now on. They are recorded before any of them is dropped: a
    table that is dropped in part no longer shows to which replicator it belongs."""
    if change.owned is not None:
        return change
    owned = own_copies(replicator)
    for copy in owned:
        check()
        _fence_copy(replicator, change, copy)
        failpoint("delete.fenced")
    return record(replicator.state, replicator.name, change, owned=owned)


def _fence_copy(replicator: Replicator, change: ReplicatorChange, copy: OwnedTable) -> None:
    current = replicator.targets.state(copy.table, copy.target)
    if current.control is None or current.control.state.command == change.id:
        return
    by = change.requested_by
    words = f"{replicator.name} --table {in_shell(copy.table)}"
    remedy = f"airflow cdc resume {words}; then airflow cdc resync {words}"
    state = State(TableState.PAUSED, utc_now(), "the replicator was deleted", remedy, set_by=by, command=change.id)
    commit_fence(replicator, copy.table, copy.target, current, by, state)


def _leave_source(
    replicator: Replicator, others: Sequence[Source], check: Callable[[], None], log_info: LogInfo
) -> CdcError | None:
    source = replicator.source
    try:
        source.drop_stream()
        failpoint("delete.stream")
        check()
        if isinstance(source, CreatesObjects):
            source.remove_objects(others)
    except Fenced:
        raise
    except CdcError as error:
        log_info(f"the source keeps what it has for the replicator: {error}")
        return error
    log_info("removed what the source kept for the replicator")
    return None


def _leave_targets(
    replicator: Replicator, change: ReplicatorChange, check: Callable[[], None], log_info: LogInfo
) -> None:
    for name in replicator.targets:
        target = replicator.targets.named(name)
        if not isinstance(target, ReleasesTables):
            kind = replicator.definition.target_named(name).type
            log_info(f"the target type {kind} removes nothing of itself")
            continue
        check()
        target.withdraw_cut()
        if change.drop_copies:
            for copy in (one for one in change.owned or () if target_of_copy(one.table) == name):
                check()
                target.drop(copy.target, copy.identity)
                log_info(f"dropped {target.locate(copy.target)}")
                failpoint("delete.dropped")
        for table, target_table in every_table(replicator).items():
            if target_of_copy(table) == name:
                check()
                target.release(table, target_table)
                failpoint("delete.released")
