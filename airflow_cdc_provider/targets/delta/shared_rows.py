"""The rows of one copy in a Delta table that other copies share: how many there are, and how they are taken back to an
earlier version. Delta's own RESTORE would take back the rows of the others, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.own_rows import own_rows_of
from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.delta.local_engine.commit import CommitLabel, StaleToken
from airflow_cdc_provider.targets.delta.local_engine.own_files import count_own, restored_own
from airflow_cdc_provider.targets.delta.record_text import record_text
from airflow_cdc_provider.targets.fencing import cannot_restore, fence_not_committed, table_changed
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from airflow_cdc_provider.targets.target import TargetState
from airflow_cdc_provider.targets.versioned import SHARED_TRIES

if TYPE_CHECKING:
    from airflow_cdc_provider.targets.delta.target import DeltaTarget


def count_own_rows(store: Store, target_table: str, state: TargetState) -> int | None:
    """Raises NeedsSpark."""
    own = own_rows_of(state.control)
    return count_own(store, target_table, own) if own else None


def restore_own_rows(target: DeltaTarget, target_table: str, expected: TargetState, version: int) -> None:
    """As ``TargetTables.restore_version``. Repeats if commits of other copies come first."""
    control, own, location = expected.control, own_rows_of(expected.control), target.locate(target_table)
    assert control is not None
    if own is None or expected.token is None:
        raise cannot_restore(location, f"version {version}", "rows of several source tables")
    label = CommitLabel(target.app_id(control.table), expected.token, record_text(control))
    for _ in range(SHARED_TRIES):
        with target.unchanged(target_table, expected, control.table):
            try:
                commit = restored_own(target.store, target_table, own, version, label)
            except StaleToken:
                raise table_changed(control.table, location, expected) from None
            except NeedsSpark as error:
                raise cannot_restore(location, f"version {version}", str(error)) from error
            if commit is None:
                return
            failpoint("restore.before")
            done = commit.commit()
            failpoint("restore.after")
            if done:
                return
    raise fence_not_committed(location)
