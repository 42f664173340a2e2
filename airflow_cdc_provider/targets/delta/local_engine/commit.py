"""A commit of the local engine: one file of the table's log, with the token and the control record."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.delta.local_engine.log_replay import ActiveFile


@dataclass(frozen=True)
class CommitLabel:
    """What a commit records besides its data: ``text`` is the control record."""

    app_id: str
    token: int
    text: str


@dataclass(frozen=True)
class PreparedCommit:
    """A commit on top of the version that was read. Rows ``updated`` include soft-deleted ones."""

    store: Store
    path: str
    content: bytes
    inserted: int
    updated: int
    deleted: int

    def commit(self) -> bool:
        """False if another commit came first."""
        return self.store.create(self.path, self.content) or self.store.read(self.path) == self.content


class StaleToken(Exception):
    """The table has a commit with this token or a higher one."""


def content_of(info: Mapping[str, Any], label: CommitLabel, actions: Iterable[Mapping[str, Any]]) -> bytes:
    """The lines of the log file."""
    token = {"appId": label.app_id, "version": label.token, "lastUpdated": info["timestamp"]}
    lines: list[Mapping[str, Any]] = [{"commitInfo": info}, {"txn": token}, *actions]
    return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines).encode()


def commit_info(
    operation: str, parameters: Mapping[str, str], metrics: Mapping[str, int], read_version: int, label: CommitLabel
) -> dict[str, Any]:
    info = {
        "timestamp": time.time_ns() // 1_000_000,
        "operation": operation,
        "operationParameters": parameters,
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "operationMetrics": {name: str(number) for name, number in metrics.items()},
        "engineInfo": "airflow-cdc-provider",
        "txnId": str(uuid.uuid4()),
        "userMetadata": label.text,
    }
    return info | ({"readVersion": read_version} if read_version >= 0 else {})


def removal(file: ActiveFile) -> dict[str, Any]:
    copied = {
        name: file.add[name] for name in ("partitionValues", "size", "tags", "deletionVector") if name in file.add
    }
    removed = {"path": file.path, "deletionTimestamp": time.time_ns() // 1_000_000, "dataChange": True}
    return {**removed, "extendedFileMetadata": True, **copied}
