"""Takes a table back to an earlier version.

The library does not: it would return deletion vectors whose files were removed, and it does not know all features."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.targets.delta.local_engine.commit import CommitLabel, StaleToken
from airflow_cdc_provider.targets.delta.local_engine.restore import restored
from airflow_cdc_provider.targets.delta.record_text import record_text
from airflow_cdc_provider.targets.fencing import cannot_restore, fence_not_committed, table_changed
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from airflow_cdc_provider.targets.target import TargetState

if TYPE_CHECKING:
    from airflow_cdc_provider.targets.delta.target import DeltaTarget


def restore_files(target: DeltaTarget, target_table: str, expected: TargetState, version: int) -> None:
    """As ``TargetTables.restore_version``."""
    control, location = expected.control, target.locate(target_table)
    assert control is not None and expected.token is not None
    label = CommitLabel(target.app_id(control.table), expected.token, record_text(control))
    try:
        commit = restored(target.store, target_table, version, label)
    except StaleToken:
        raise table_changed(control.table, location, expected) from None
    except NeedsSpark as error:
        raise cannot_restore(location, f"version {version}", str(error)) from error
    failpoint("restore.before")
    done = commit.commit()
    failpoint("restore.after")
    if not done:
        raise fence_not_committed(location)
