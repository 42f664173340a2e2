"""A whole copy: files of rows, written by any process; then one commit that puts them in the place of all that is
there, columns and settings included."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.delta.local_engine.data_file import GROUP_ROWS, DataFileWriter
from airflow_cdc_provider.targets.delta.local_engine.log_replay import ActiveFile, commit_path, read_snapshot
from airflow_cdc_provider.targets.delta.local_engine.merge import Label, Prepared, TokenPassed, commit_info, removal
from airflow_cdc_provider.targets.delta.local_engine.protocol_support import (
    READER,
    TIMESTAMP_NTZ,
    WRITER,
    measured_columns,
    supports_writes,
)

FILE_BYTES = 128 << 20
"""A file this large is followed by another one."""

RUN_BYTES = 32 << 20
"""Rows in memory that are sorted and written together."""

LAYOUT_SETTINGS = "delta.dataSkipping"

Add = dict[str, Any]
"""The action that names a file."""


@dataclass(frozen=True)
class FileLayout:
    """How rows lie in their files. ``order``: the columns that runs of rows are sorted by; without any they stay as
    they come. ``measured`` and ``high_cardinality`` are those of ``DataFileWriter``."""

    order: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()
    high_cardinality: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReplacedVersion:
    """Where a copy goes: the commit that makes ``version``, and all it says but the new files. ``protocol`` is told
    where the table is new. ``tokens``: those that the version before holds."""

    version: int
    metadata: Mapping[str, Any]
    protocol: Mapping[str, Any] | None
    removed: tuple[ActiveFile, ...] = ()
    tokens: Mapping[str, int] = field(default_factory=dict)


def new_table(columns: Sequence[tuple[str, str]], properties: Mapping[str, str]) -> ReplacedVersion:
    """For a table that is not there yet. ``columns``: names and Delta's types."""
    features = ["deletionVectors", *(["timestampNtz"] if TIMESTAMP_NTZ in dict(columns).values() else [])]
    protocol = {
        "minReaderVersion": READER,
        "minWriterVersion": WRITER,
        "readerFeatures": features,
        "writerFeatures": [*features, "appendOnly", "invariants"],
    }
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": _schema_text(columns),
        "partitionColumns": [],
        "configuration": dict(properties),
        "createdTime": time.time_ns() // 1_000_000,
    }
    return ReplacedVersion(0, metadata, protocol)


def existing_table(
    store: Store, table: str, columns: Sequence[tuple[str, str]], properties: Mapping[str, str]
) -> ReplacedVersion | None:
    """Over a table that is there; None where it asks more of its writers than is done here."""
    snapshot = read_snapshot(store, table)
    if snapshot is None or not supports_writes(snapshot):
        return None
    if TIMESTAMP_NTZ in dict(columns).values() and "timestampNtz" not in snapshot.protocol["writerFeatures"]:
        return None
    settings: Mapping[str, str] = snapshot.metadata.get("configuration", {})
    kept = {name: value for name, value in settings.items() if not name.startswith(LAYOUT_SETTINGS)}
    metadata = {**snapshot.metadata, "schemaString": _schema_text(columns), "configuration": {**kept, **properties}}
    return ReplacedVersion(snapshot.version + 1, metadata, None, snapshot.files, snapshot.tokens)


def layout_of(place: ReplacedVersion, order: Sequence[str], various: Sequence[str]) -> FileLayout:
    return FileLayout(tuple(order), tuple(measured_columns(place.metadata)), tuple(various))


def write_files(store: Store, table: str, rows: Iterable[pa.Table], layout: FileLayout) -> list[Add]:
    """The ``add`` actions of new files that hold all these rows."""
    adds, file = list[Add](), None
    try:
        for run in _runs(rows):
            if file is None:
                file = DataFileWriter(store, table, run.schema, layout.measured, layout.high_cardinality)
            for some in _sorted(run, layout.order):
                file.write(some)
            if file.bytes >= FILE_BYTES:
                adds.append(file.close())
                file = None
        return adds if file is None else [*adds, file.close()]
    except BaseException:
        if file is not None:
            file.discard()
        raise


def prepared_copy(
    store: Store, table: str, place: ReplacedVersion, adds: Sequence[Add], rows: int, label: Label
) -> Prepared:
    """Raises TokenPassed."""
    if place.tokens.get(label.app_id, -1) >= label.token:
        raise TokenPassed
    metrics = {
        "numFiles": len(adds),
        "numOutputRows": rows,
        "numOutputBytes": sum(int(one["size"]) for one in adds),
        "numRemovedFiles": len(place.removed),
    }
    parameters = {"mode": "Overwrite", "partitionBy": "[]"}
    info = commit_info("WRITE", parameters, metrics, place.version - 1, label)
    token = {"appId": label.app_id, "version": label.token, "lastUpdated": info["timestamp"]}
    lines: list[Mapping[str, Any]] = [{"commitInfo": info}, {"txn": token}]
    if place.protocol is not None:
        lines.append({"protocol": place.protocol})
    lines.append({"metaData": place.metadata})
    lines += [{"remove": removal(one)} for one in place.removed]
    lines += [{"add": one} for one in adds]
    content = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines).encode()
    return Prepared(store, commit_path(table, place.version), content, rows, 0, 0)


def _runs(rows: Iterable[pa.Table]) -> Iterator[pa.Table]:
    some, size = list[pa.Table](), 0
    for table in rows:
        some.append(table)
        size += table.nbytes
        if size >= RUN_BYTES:
            yield pa.concat_tables(some)
            some, size = [], 0
    if sum(map(len, some)):
        yield pa.concat_tables(some)


def _sorted(run: pa.Table, order: Sequence[str]) -> Iterator[pa.Table]:
    """Taken in their order piece by piece, so that the rows are in memory once."""
    if not order:
        yield run
        return
    numbers = pc.sort_indices(run, [(name, "ascending") for name in order])
    for start in range(0, len(numbers), GROUP_ROWS):
        yield run.take(numbers[start : start + GROUP_ROWS])


def _schema_text(columns: Sequence[tuple[str, str]]) -> str:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns]
    return json.dumps({"type": "struct", "fields": fields}, ensure_ascii=False)
