"""Parquet files of change records in a window."""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import groupby
from operator import attrgetter

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_cdc_provider.connectors.blocks import Block, log_columns
from airflow_cdc_provider.core.errors import StagingUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.change_log import DataFile
from airflow_cdc_provider.core.log.change_records import FIELDS, ChangeRecord
from airflow_cdc_provider.staging.file_output import NewFile, OutputStream
from airflow_cdc_provider.staging.store import Store

SCHEMA = log_columns()
DICTIONARY_COLUMNS = ["table", "op", "schema_id", "tx_id", "commit_ts", "snapshot"]
"""Columns with few distinct values; a dictionary does not help the others."""

FIELD_GETTERS = {name: attrgetter(name) for name in FIELDS}


@dataclass(frozen=True)
class WrittenFile:
    """A closed file and statistics of its records."""

    file: DataFile
    counts: dict[str, int]
    schema_ids: tuple[str, ...]
    commit_ts_min: datetime | None
    commit_ts_max: datetime | None


class RecordFile:
    """One file being written, a row group at a time. Raises StagingUnavailable where the storage fails."""

    def __init__(self, store: Store, path: str) -> None:
        self.rows = 0
        self._path = path
        self._sink = _HashingSink(store, path)
        begin = partial(pq.ParquetWriter, schema=SCHEMA, compression="zstd", use_dictionary=DICTIONARY_COLUMNS)
        self._file = NewFile(self._sink, begin)
        self._counts: Counter[str] = Counter()
        self._schema_ids: dict[str, None] = {}
        self._times: list[datetime] = []

    def write(self, records: Sequence[ChangeRecord | Block]) -> None:
        """Append the records as one row group."""
        table = pa.Table.from_batches(_batches(records), SCHEMA)
        self._file.writer.write_table(table, row_group_size=table.num_rows)
        self.rows += table.num_rows
        for count in pc.value_counts(table["op"]).to_pylist():
            self._counts[count["values"]] += count["counts"]
        self._schema_ids.update(dict.fromkeys(filter(None, pc.unique(table["schema_id"]).to_pylist())))
        bounds = pc.min_max(table["commit_ts"]).as_py()
        times = [*self._times, *(time for time in bounds.values() if time is not None)]
        self._times = [min(times), max(times)] if times else []

    def close(self) -> WrittenFile:
        self._file.close()
        failpoint("extract.after_first_file")
        file = DataFile(self._path, self.rows, self._sink.bytes, self._sink.sha256.hexdigest())
        earliest, latest = (self._times[0], self._times[-1]) if self._times else (None, None)
        return WrittenFile(file, dict(self._counts), tuple(self._schema_ids), earliest, latest)

    def discard(self) -> None:
        self._file.discard()


def _batches(records: Sequence[ChangeRecord | Block]) -> Iterator[pa.RecordBatch]:
    for are_blocks, group in groupby(records, lambda item: isinstance(item, Block)):
        if are_blocks:
            yield from (block.columns for block in group if isinstance(block, Block))
        else:
            yield record_batch([record for record in group if isinstance(record, ChangeRecord)])


def record_batch(records: Sequence[ChangeRecord]) -> pa.RecordBatch:
    columns = {name: list(map(value, records)) for name, value in FIELD_GETTERS.items()}
    return pa.RecordBatch.from_arrays([pa.array(columns[field.name], field.type) for field in SCHEMA], schema=SCHEMA)


class _HashingSink(OutputStream):
    """Computes the SHA-256 of the written content."""

    def __init__(self, store: Store, path: str) -> None:
        super().__init__(store, path)
        self.sha256 = hashlib.sha256()

    def write(self, content: bytes) -> int:
        with self.guarded():
            failpoint("extract.write")
        self.sha256.update(content)
        return super().write(content)

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StagingUnavailable.of(
                "STG010",
                "cannot write a file in staging",
                where=self.where,
                found=error.strerror or type(error).__name__,
                do="free space in staging or fix its permissions; the next run writes the window again",
                data="the source retains the changes; sealed windows and target tables are unchanged",
            ) from error
