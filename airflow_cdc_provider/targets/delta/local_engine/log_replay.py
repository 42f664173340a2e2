"""Replays the log of a Delta table into its newest version, as far as the local engine supports the protocol."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import pyarrow.parquet as pq

from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.delta.names import LOG
from airflow_cdc_provider.targets.needs_spark import NeedsSpark

REPLAYED = ("protocol", "metaData", "txn", "add")
MAX_ACTIONS = 20_000
"""Reading more actions of a checkpoint takes longer than starting Spark."""

MAPS = frozenset({"partitionValues", "configuration", "options", "tags"})
Action = Mapping[str, Any]


@dataclass(frozen=True)
class ActiveFile:
    """``add``: the action in the log that added the file."""

    add: Action

    @property
    def path(self) -> str:
        return str(self.add["path"])

    @property
    def vector(self) -> Action | None:
        """The descriptor of the deletion vector."""
        return self.add.get("deletionVector")

    @cached_property
    def stats(self) -> Mapping[str, Any]:
        return json.loads(self.add.get("stats") or "{}")  # type: ignore[no-any-return]

    @property
    def rows(self) -> int | None:
        """The number of rows, those marked deleted included; None if the log has no statistics."""
        return self.stats.get("numRecords")

    @property
    def live_rows(self) -> int | None:
        """The number of rows without those marked deleted."""
        return None if self.rows is None else self.rows - int((self.vector or {}).get("cardinality", 0))


@dataclass(frozen=True)
class TableSnapshot:
    version: int
    protocol: Action
    metadata: Action
    tokens: Mapping[str, int]
    files: tuple[ActiveFile, ...]


def live_rows(snapshot: TableSnapshot) -> int:
    """Raises NeedsSpark."""
    counts = [file.live_rows for file in snapshot.files]
    if None in counts:
        raise NeedsSpark("data files without statistics")
    return sum(filter(None, counts))


def commit_path(table: str, version: int) -> str:
    return f"{table}/{LOG}/{version:020d}.json"


def read_snapshot(store: Store, table: str, at: int | None = None, limit: int | None = MAX_ACTIONS) -> TableSnapshot:
    """The newest version of a table, or version ``at``. ``store``: the target's location. ``limit``: of actions in the
    checkpoint of the newest version. Raises NeedsSpark."""
    version, actions = -1, list[dict[str, Any]]()
    checkpoint = last_checkpoint(store, table) if at is None else _checkpoint_before(store, table, at)
    if checkpoint is not None:
        if checkpoint.keys() & {"parts", "v2Checkpoint"}:
            raise NeedsSpark("a log with checkpoints of several files")
        if limit is not None and int(checkpoint.get("size") or 0) > limit:
            raise NeedsSpark(f"a log of more than {limit:,} actions")
        version = int(checkpoint["version"])
        path = f"{table}/{LOG}/{version:020d}.checkpoint.parquet"
        try:
            actions = _checkpointed(store, path)
        except FileNotFoundError:
            raise NeedsSpark("a log without its checkpoint") from None
    replay = _Replay(actions)
    for commit in islice(_commits(store, table, version + 1), None if at is None else at - version):
        version += 1
        replay.apply(commit)
    if at not in (None, version):
        raise NeedsSpark("an incomplete log")
    if replay.protocol is None or replay.metadata is None:
        raise NeedsSpark("an incomplete log")
    files = tuple(ActiveFile(add) for add in replay.adds.values())
    return TableSnapshot(version, replay.protocol, replay.metadata, replay.tokens, files)


class _Replay:
    """A file is identified by its path and its deletion vector: a commit that changes the vector has a ``remove`` and
    an ``add`` of the file, in any order."""

    def __init__(self, actions: Iterable[Action]) -> None:
        self.protocol: Action | None = None
        self.metadata: Action | None = None
        self.tokens: dict[str, int] = {}
        self.adds: dict[tuple[str, str], Action] = {}
        self.apply(actions)

    def apply(self, actions: Iterable[Action]) -> None:
        for action in actions:
            ((name, body),) = action.items()
            match name:
                case "protocol":
                    self.protocol = body
                case "metaData":
                    self.metadata = body
                case "txn":
                    self.tokens[body["appId"]] = int(body["version"])
                case "add":
                    self.adds[file_identity(body)] = body
                case "remove":
                    self.adds.pop(file_identity(body), None)


def file_identity(action: Action) -> tuple[str, str]:
    vector = action.get("deletionVector")
    vector_id = f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}" if vector else ""
    return str(action["path"]), vector_id


def last_checkpoint(store: Store, table: str) -> dict[str, Any] | None:
    """The content of ``_last_checkpoint``."""
    try:
        return json.loads(store.read(f"{table}/{LOG}/_last_checkpoint"))  # type: ignore[no-any-return]
    except FileNotFoundError:
        return None


def _checkpoint_before(store: Store, table: str, at: int) -> dict[str, Any] | None:
    """As ``last_checkpoint``, of the last one at or before a version. Those of several files are ignored."""
    names = (name.split(".") for name in store.names(f"{table}/{LOG}") if name.endswith(".checkpoint.parquet"))
    versions = [int(parts[0]) for parts in names if len(parts) == 3 and int(parts[0]) <= at]
    return {"version": max(versions)} if versions else None


def _checkpointed(store: Store, path: str) -> list[dict[str, Any]]:
    with store.open_input(path) as content, pq.ParquetFile(content) as file:
        present = [name for name in REPLAYED if name in file.schema_arrow.names]
        rows = file.read(columns=present).to_pylist()
    return [{name: _without_nulls(body)} for row in rows for name, body in row.items() if body is not None]


def _without_nulls(body: Mapping[str, Any]) -> dict[str, Any]:
    """Parquet maps are read as pairs. Parsed duplicates of other columns are left out."""
    result = dict[str, Any]()
    for name, value in body.items():
        if name.endswith("_parsed"):
            continue
        if isinstance(value, dict):
            result[name] = _without_nulls(value)
        elif value is not None:
            result[name] = dict(value) if name in MAPS else value
    return result


def _commits(store: Store, table: str, first: int) -> Iterator[list[dict[str, Any]]]:
    version = first
    while True:
        try:
            content = store.read(commit_path(table, version))
        except FileNotFoundError:
            return
        yield [json.loads(line) for line in content.splitlines() if line]
        version += 1
