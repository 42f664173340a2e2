"""Takes a table back to an earlier version of its own, as Delta's RESTORE does: its files and its metadata. The
protocol, the tokens and the ids of columns do not go back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.delta.alterations import MAX_ID
from airflow_cdc_provider.targets.delta.local_engine.commit import (
    CommitLabel,
    PreparedCommit,
    StaleToken,
    commit_info,
    content_of,
    removal,
)
from airflow_cdc_provider.targets.delta.local_engine.deletion_vectors import vector_exists
from airflow_cdc_provider.targets.delta.local_engine.log_replay import (
    ActiveFile,
    commit_path,
    file_identity,
    read_snapshot,
)
from airflow_cdc_provider.targets.needs_spark import NeedsSpark


def restored(store: Store, table: str, version: int, label: CommitLabel) -> PreparedCommit:
    """``label``: of the commit that is in force. Raises StaleToken if another one is, and NeedsSpark where the log or
    the files do not reach back."""
    now, before = read_snapshot(store, table, limit=None), read_snapshot(store, table, version)
    if now.tokens.get(label.app_id) != label.token:
        raise StaleToken
    present = {file_identity(file.add): file for file in now.files}
    past = {file_identity(file.add): file for file in before.files}
    returned = [file for identity, file in past.items() if identity not in present]
    require_files(store, table, returned)
    actions: list[Mapping[str, Any]] = [{"metaData": _metadata(before.metadata, now.metadata)}]
    actions += [{"remove": removal(file)} for identity, file in present.items() if identity not in past]
    actions += [{"add": {**file.add, "dataChange": True}} for file in returned]
    info = commit_info("RESTORE", {"version": str(version)}, {}, now.version, label)
    return PreparedCommit(store, commit_path(table, now.version + 1), content_of(info, label, actions), 0, 0, 0)


def require_files(store: Store, table: str, files: Iterable[ActiveFile]) -> None:
    """Raises NeedsSpark where a file of an earlier version, or its deletion vector, was removed."""
    if missing := next((one.path for one in files if not _exists(store, table, one.add)), None):
        raise NeedsSpark(f"file {missing}, or its deletion vector, was removed")


def _exists(store: Store, table: str, add: Mapping[str, Any]) -> bool:
    vector = add.get("deletionVector")
    in_folder = store.exists(f"{table}/{unquote(str(add['path']))}")
    return in_folder and (not vector or vector_exists(store, table, vector))


def _metadata(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    configuration: dict[str, str] = dict(before.get("configuration", {}))
    highest = now.get("configuration", {}).get(MAX_ID)
    if MAX_ID in configuration and highest:
        configuration[MAX_ID] = highest
    return {**before, "configuration": configuration}
