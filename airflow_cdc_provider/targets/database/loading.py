"""Rows → a staging table or a new copy. Each part of the rows is loaded where it is: by the driver, or by a Spark task.
A task may run twice, and the first run may end after the second."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, runtime_checkable

import pyarrow

from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.database.row_texts import as_texts, is_binary
from airflow_cdc_provider.targets.database.server import Server
from airflow_cdc_provider.targets.database.text_loads import load_texts


@dataclass(frozen=True)
class LoadedPart:
    """``file``: empty if the rows are in the table already. ``bytes``: of the file."""

    rows: int
    file: str = ""
    bytes: int = 0


@runtime_checkable
class LoadsFiles(Protocol):
    """A server that loads files of its stage. Each task writes a file of its own. Only the files that the driver names
    are loaded, all by one statement."""

    def create_stage(self, cursor: Any) -> None:
        """Idempotent."""

    def write_file(
        self, table: str, schema: TableSchema, part: int, batches: Iterable[pyarrow.RecordBatch]
    ) -> LoadedPart:
        """``schema``: of the table, besides the technical columns. There is at least one batch."""

    def load_files(
        self, table: str, schema: TableSchema, columns: Sequence[str], parts: Sequence[LoadedPart], window: int
    ) -> None:
        """Load the files of the parts into an empty table, whatever answer is lost, once. ``columns``: those that the
        batches had, in order."""


def load_part(
    server: Server,
    table: str,
    schema: TableSchema,
    columns: Sequence[str],
    part: int,
    batches: Iterable[pyarrow.RecordBatch],
) -> LoadedPart:
    """Load these columns of the rows of one part, or write them to a file."""
    incoming = (batch.select(columns) for batch in batches)
    first = next(incoming, None)
    if first is None:
        return LoadedPart(0)
    rows = chain([first], incoming)
    if isinstance(server, LoadsFiles):
        return server.write_file(table, schema, part, rows)
    kinds = {field.name: is_binary(field.type) for field in first.schema}
    return LoadedPart(load_texts(server, table, kinds, part, (as_texts(batch, schema.names) for batch in rows)))


def finish_load(
    server: Server, table: str, schema: TableSchema, columns: Sequence[str], parts: Sequence[LoadedPart], window: int
) -> int:
    """Load the files of the parts. ``columns``: as of each part. Returns the number of rows."""
    files = [part for part in parts if part.file]
    if files and isinstance(server, LoadsFiles):
        server.load_files(table, schema, columns, files, window)
    return sum(part.rows for part in parts)
