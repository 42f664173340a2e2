"""Rows of a split in a temporary file of the driver: they are read from the source once, and written after that."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterable, Iterator
from typing import BinaryIO, cast

import pyarrow as pa


class SpooledRows:
    """The file is deleted with this object."""

    def __init__(self, tables: Iterable[pa.Table]) -> None:
        """Reads all ``tables``, which have one schema."""
        self._file = cast(BinaryIO, tempfile.TemporaryFile(prefix="cdc-copy-"))  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        writer: pa.RecordBatchStreamWriter | None = None
        for table in tables:
            writer = writer or pa.ipc.new_stream(self._file, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Nothing if there was no table."""
        if not self._file.tell():
            return
        self._file.seek(0)
        yield from pa.ipc.open_stream(self._file)
