"""A full copy: data files written by any process, then one commit that replaces all data, columns and settings of the
table."""

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
from airflow_cdc_provider.targets.delta.local_engine.commit import (
    CommitLabel,
    PreparedCommit,
    StaleToken,
    commit_info,
    content_of,
    removal,
)
from airflow_cdc_provider.targets.delta.local_engine.data_file import GROUP_ROWS, DataFileWriter
from airflow_cdc_provider.targets.delta.local_engine.log_replay import ActiveFile, commit_path, read_snapshot
from airflow_cdc_provider.targets.delta.local_engine.protocol_support import (
    READER,
    TIMESTAMP_NTZ,
    WRITER,
    columns_with_statistics,
    require_writable,
)
from airflow_cdc_provider.targets.needs_spark import NeedsSpark

FILE_BYTES = 128 << 20
"""Size at which a new file is started."""

RUN_BYTES = 32 << 20
"""Rows in memory that are sorted and written together."""

LAYOUT_SETTINGS = "delta.dataSkipping"

Add = dict[str, Any]
"""The ``add`` action of a file in the Delta log."""


@dataclass(frozen=True)
class FileLayout:
    """``order``: the columns by which runs of rows are sorted; if empty, rows keep their order. The other
    columns are those of ``DataFileWriter``."""

    order: tuple[str, ...] = ()
    statistics_columns: tuple[str, ...] = ()
    high_cardinality: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReplacedVersion:
    """The commit of a copy as ``version``, without its new files. ``protocol`` is set if the table is new. ``tokens``:
    those of the version before."""

    version: int
    metadata: Mapping[str, Any]
    protocol: Mapping[str, Any] | None
    removed: tuple[ActiveFile, ...] = ()
    tokens: Mapping[str, int] = field(default_factory=dict)


def new_table(columns: Sequence[tuple[str, str]], properties: Mapping[str, str]) -> ReplacedVersion:
    """For a table that does not exist. ``columns``: names and Delta types."""
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
) -> ReplacedVersion:
    """For a table that exists. Raises NeedsSpark."""
    snapshot = read_snapshot(store, table)
    require_writable(snapshot)
    if TIMESTAMP_NTZ in dict(columns).values() and "timestampNtz" not in snapshot.protocol["writerFeatures"]:
        raise NeedsSpark("a table without the feature timestampNtz")
    settings: Mapping[str, str] = snapshot.metadata.get("configuration", {})
    kept = {name: value for name, value in settings.items() if not name.startswith(LAYOUT_SETTINGS)}
    metadata = {**snapshot.metadata, "schemaString": _schema_text(columns), "configuration": {**kept, **properties}}
    return ReplacedVersion(snapshot.version + 1, metadata, None, snapshot.files, snapshot.tokens)


def file_layout(replaced: ReplacedVersion, order: Sequence[str], high_cardinality: Sequence[str]) -> FileLayout:
    return FileLayout(tuple(order), tuple(columns_with_statistics(replaced.metadata)), tuple(high_cardinality))


def write_files(store: Store, table: str, rows: Iterable[pa.Table], layout: FileLayout) -> list[Add]:
    """Writes all rows into new files and returns their ``add`` actions."""
    adds, file = list[Add](), None
    try:
        for run in _runs(rows):
            if file is None:
                file = DataFileWriter(store, table, run.schema, layout.statistics_columns, layout.high_cardinality)
            for part in _sorted(run, layout.order):
                file.write(part)
            if file.bytes >= FILE_BYTES:
                adds.append(file.close())
                file = None
        return adds if file is None else [*adds, file.close()]
    except BaseException:
        if file is not None:
            file.discard()
        raise


def prepare_copy(
    store: Store, table: str, replaced: ReplacedVersion, adds: Sequence[Add], rows: int, label: CommitLabel
) -> PreparedCommit:
    """Raises StaleToken."""
    if replaced.tokens.get(label.app_id, -1) >= label.token:
        raise StaleToken
    metrics = {
        "numFiles": len(adds),
        "numOutputRows": rows,
        "numOutputBytes": sum(int(add["size"]) for add in adds),
        "numRemovedFiles": len(replaced.removed),
    }
    parameters = {"mode": "Overwrite", "partitionBy": "[]"}
    info = commit_info("WRITE", parameters, metrics, replaced.version - 1, label)
    actions: list[Mapping[str, Any]] = [{"protocol": replaced.protocol}] if replaced.protocol is not None else []
    actions.append({"metaData": replaced.metadata})
    actions += [{"remove": removal(file)} for file in replaced.removed]
    actions += [{"add": add} for add in adds]
    content = content_of(info, label, actions)
    return PreparedCommit(store, commit_path(table, replaced.version), content, rows, 0, 0)


def _runs(rows: Iterable[pa.Table]) -> Iterator[pa.Table]:
    run, size = list[pa.Table](), 0
    for table in rows:
        run.append(table)
        size += table.nbytes
        if size >= RUN_BYTES:
            yield pa.concat_tables(run)
            run, size = [], 0
    if sum(map(len, run)):
        yield pa.concat_tables(run)


def _sorted(run: pa.Table, order: Sequence[str]) -> Iterator[pa.Table]:
    """The sorted rows in parts, so that the whole run is in memory only once."""
    if not order:
        yield run
        return
    indices = pc.sort_indices(run, [(name, "ascending") for name in order])
    for start in range(0, len(indices), GROUP_ROWS):
        yield run.take(indices[start : start + GROUP_ROWS])


def _schema_text(columns: Sequence[tuple[str, str]]) -> str:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns]
    return json.dumps({"type": "struct", "fields": fields}, ensure_ascii=False)
