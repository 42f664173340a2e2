"""Change records of a large batch in temporary files of the driver. Each file, a piece, has all records of its keys."""

from __future__ import annotations

import contextlib
import tempfile
import zlib
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from spark_jobs.folds.key_groups import entry_keys


@contextlib.contextmanager
def pieces_by_key(records: Iterable[pa.Table], schema: pa.Schema, pieces: int) -> Iterator[list[Piece]]:
    """Reads all ``records``, which have this schema. The files are deleted when the block ends."""
    with contextlib.ExitStack() as files:
        found = [Piece(files, schema) for _ in range(pieces)]
        for some in records:
            numbers = _piece_numbers(some, pieces)
            ordered = some.take(pa.array(np.argsort(numbers, kind="stable"))).combine_chunks()
            ends = np.cumsum(np.bincount(numbers, minlength=pieces)).tolist()
            for piece, start, end in zip(found, [0, *ends], ends, strict=False):
                piece.append(ordered.slice(start, end - start))
        yield found


class Piece:
    """``bytes``: of its records in memory."""

    def __init__(self, files: contextlib.ExitStack, schema: pa.Schema) -> None:
        self._file = files.enter_context(tempfile.TemporaryFile(prefix="cdc-fold-"))  # noqa: SIM115
        self._writer = files.enter_context(pa.ipc.new_stream(self._file, schema))
        self.bytes = 0

    def append(self, records: pa.Table) -> None:
        self._writer.write_table(records)
        self.bytes += records.nbytes

    def read(self) -> pa.Table:
        """All records; nothing can be appended afterwards."""
        self._writer.close()
        self._file.seek(0)
        return pa.ipc.open_stream(self._file).read_all()


def _piece_numbers(records: pa.Table, pieces: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """A record without a key is in any piece: no fold accepts it."""
    keys = entry_keys(records).fill_null("").cast(pa.binary()).to_pylist()
    return np.fromiter(map(zlib.crc32, keys), np.int64, len(keys)) % pieces
