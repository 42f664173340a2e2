"""Parquet files in a bucket, through which a warehouse takes rows and hands them out.

No part of a path starts with ``_`` or ``.``: to Redshift, such files are hidden."""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow
import pyarrow.parquet

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import StagingUnavailable, TargetUnavailable
from airflow_cdc_provider.staging.file_output import NewFile, OutputStream
from airflow_cdc_provider.staging.open_store import open_store
from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.database.loading import LoadedPart

RESULTS = "results"
RESULTS_LIVE_S = 24 * 3600
"""How long the files of a result stay: a job may read them until it ends."""


@dataclass(frozen=True)
class Stage:
    """Pickled and sent to Spark's executors with the tasks that write and read files."""

    location: str
    connection: ConnectionInfo

    @property
    def store(self) -> Store:
        """Raises the errors of ``open_store``."""
        return open_store(self.location, self.connection)

    def url(self, path: str) -> str:
        return self.store.url(path)

    def write(self, table: str, batches: Iterable[pyarrow.RecordBatch]) -> LoadedPart:
        """Write a file of a name that no other task uses. There is at least one batch."""
        store, path = self.store, f"{folder(table)}/{uuid.uuid4().hex}.parquet"
        file = NewFile(_StageFile(store, path), lambda sink: ParquetRows(sink, batches))
        file.close()
        return LoadedPart(file.writer.rows, path, file.sink.bytes)

    def write_manifest(self, table: str, parts: Sequence[LoadedPart]) -> str:
        """The list of exactly these files; its URL."""
        store, path = self.store, f"{folder(table)}/{uuid.uuid4().hex}.manifest"
        entries = [
            {"url": store.url(part.file), "mandatory": True, "meta": {"content_length": part.bytes}} for part in parts
        ]
        with guarded(self.location):
            store.write(path, json.dumps({"entries": entries}).encode())
        return store.url(path)

    def delete(self, table: str) -> None:
        with guarded(self.location):
            self.store.delete(folder(table))

    def new_result(self) -> str:
        """The path prefix of a new result; results of jobs that have ended long ago are deleted."""
        store, now = self.store, int(time.time())
        with guarded(self.location):
            for name in store.names(RESULTS):
                if int(name.partition("-")[0]) < now - RESULTS_LIVE_S:
                    store.delete(f"{RESULTS}/{name}")
        return f"{RESULTS}/{now}-{uuid.uuid4().hex}/"

    def result_parts(self, result: str) -> list[ResultFile]:
        """The files that the manifest of a result lists."""
        store = self.store
        with guarded(self.location):
            manifest = json.loads(store.read(f"{result}manifest"))
        root = f"{store.root}/"
        return [ResultFile(self, entry["url"].removeprefix(root)) for entry in manifest["entries"]]


@dataclass(frozen=True)
class ResultFile:
    stage: Stage
    path: str

    def to_arrow(self) -> pyarrow.Table:
        with guarded(self.stage.location), self.stage.store.open_input(self.path) as content:
            return pyarrow.parquet.read_table(content)


class ParquetRows:
    """Batches of one schema as a Parquet file; there is at least one. ``rows`` is the number of rows."""

    def __init__(self, sink: Any, batches: Iterable[pyarrow.RecordBatch]) -> None:
        incoming = iter(batches)
        first = next(incoming)
        self.rows, self.columns = 0, list(first.schema.names)
        self._writer = pyarrow.parquet.ParquetWriter(sink, first.schema, compression="snappy")
        try:
            for batch in chain([first], incoming):
                self._writer.write_batch(batch)
                self.rows += batch.num_rows
        except BaseException:
            self._writer.close()
            raise

    def close(self) -> None:
        self._writer.close()


class _StageFile(OutputStream):
    def guarded(self) -> AbstractContextManager[None]:
        return guarded(self.where)


def folder(table: str) -> str:
    """The folder of the files of a staging table."""
    return table.lstrip("_.")


@contextlib.contextmanager
def guarded(location: str) -> Iterator[None]:
    """Raises TargetUnavailable for the errors of a store."""
    try:
        yield
    except StagingUnavailable as error:
        raise TargetUnavailable.of(
            "TGT080",
            "the stage of the target cannot be read or written",
            where=location,
            found=error.problems[0].found,
            do="check the bucket, and the rights of the connection that stage_connection names",
        ) from error
