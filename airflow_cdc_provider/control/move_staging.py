"""Moves the staging folder of a replicator. The new folder is complete before it is used, and the old one is removed
after that: at each moment exactly one of the two is the change log."""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.control.footprint import fence_copies
from airflow_cdc_provider.control.replicator import LogInfo, Replicator
from airflow_cdc_provider.control.replicator_changes import check_holder, record, release_lanes
from airflow_cdc_provider.core.decisions.replicator_changes import ReplicatorChange, ReplicatorEntry, require_holder
from airflow_cdc_provider.core.errors import CommandRefused
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.spec.definition import Staging
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.staging.transfer import copy_files


def require_empty(store: Store) -> None:
    """Raises CommandRefused (CMD027)."""
    if next(iter(store.files("")), None) is not None:
        raise CommandRefused.of(
            "CMD027",
            "the new staging folder is not empty",
            where=store.root,
            allowed="no files below it",
            do="choose another one, or remove what is in it",
            data="nothing was changed",
        )


def require_apart(former: Store, new: Store) -> None:
    """Raises CommandRefused (CMD028)."""
    one, other = sorted((f"{former.root}/", f"{new.root}/"))
    if other.startswith(one):
        raise CommandRefused.of(
            "CMD028",
            "the new staging folder is the old one, or one is inside of the other",
            where=new.root,
            found=former.root,
            do="choose another one",
            data="nothing was changed",
        )


def move_staging(replicator: Replicator, change: ReplicatorChange, new: Store, log_info: LogInfo) -> None:
    """``replicator``: with the former location; ``new``: its folder in the new one. No run is active; drivers that are
    out of reach are fenced, since they would write to the former folder. Raises Fenced (CMD034) if another process has
    taken the change over."""
    state, name, former = replicator.state, replicator.name, replicator.log.store
    assert change.staging is not None
    assert change.former_staging is not None
    staging, former_staging = change.staging, change.former_staging

    def check() -> None:
        check_holder(state, name, change)

    failpoint("move.begun")
    if check_holder(state, name, change).definition.staging == former_staging:
        fence_copies(replicator, change.requested_by)
        log_info(f"copied {copy_files(former, new, check)} files to {new.root}")
        failpoint("move.copied")
        state.replicators.change(name, lambda entry: _with_staging(require_holder(entry, name, change), staging))
    failpoint("move.switched")
    check()
    former.delete("")
    log_info(f"removed {former.root}")
    failpoint("move.removed")
    check()
    detail = {"from": former_staging.location, "to": staging.location}
    state.write_audit(name, change.requested_by, "move staging", detail)
    release_lanes(state, name, change.holder)
    record(state, name, change, done_at=utc_now())


def _with_staging(entry: ReplicatorEntry, staging: Staging) -> ReplicatorEntry:
    return replace(entry, definition=replace(entry.definition, staging=staging))
