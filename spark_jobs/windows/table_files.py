"""The records of one table while a window is written: in memory, in files of ended transactions, in files of the open
one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from spark_jobs.windows.record_files import RecordFile, WrittenFile


class TableFiles:
    """Rows after index ``_ended`` belong to the open transaction. Large open transactions get their own files, which
    join the others when the transaction ends."""

    def __init__(self, new_file: Callable[[], RecordFile], file_records: int) -> None:
        self.rows: list[ChangeRecord | Block] = []
        self._ended = 0
        self._closed = _FileChain(new_file, file_records)
        self._open = _FileChain(new_file, file_records)

    def end_transaction(self) -> None:
        self._ended = len(self.rows)
        if self._open.used:
            self._closed.take_over(self._open)

    def spill(self, include_open: bool) -> None:
        """Move records from memory to files: those of ended transactions, and with ``include_open`` those of the open
        one."""
        self._closed.append(self.rows[: self._ended])
        del self.rows[: self._ended]
        self._ended = 0
        if include_open:
            self._open.append(self.rows)
            self.rows.clear()

    @property
    def file_is_open(self) -> bool:
        return self._closed.current is not None or self._open.current is not None

    def close_files(self) -> None:
        self._closed.close()
        self._open.close()

    def finish(self) -> tuple[WrittenFile, ...]:
        """The files of ended transactions; the open transaction is discarded."""
        self.spill(include_open=False)
        self._closed.close()
        self._open.discard()
        return tuple(self._closed.written)

    def discard(self) -> None:
        self._closed.discard()
        self._open.discard()


class _FileChain:
    """Consecutive files, each of at most ``file_records`` plus one row group."""

    def __init__(self, new_file: Callable[[], RecordFile], file_records: int) -> None:
        self._new_file = new_file
        self._file_records = file_records
        self.current: RecordFile | None = None
        self.written: list[WrittenFile] = []
        self._finished: list[RecordFile] = []

    @property
    def used(self) -> bool:
        return self.current is not None or bool(self.written)

    def append(self, records: Sequence[ChangeRecord | Block]) -> None:
        if not records:
            return
        self.current = self.current or self._new_file()
        self.current.write(records)
        if self.current.rows >= self._file_records:
            self.close()

    def close(self) -> None:
        if self.current is not None:
            self.written.append(self.current.close())
            self._finished.append(self.current)
            self.current = None

    def take_over(self, other: _FileChain) -> None:
        """Append the files of ``other``, which is empty afterwards."""
        self.close()
        self.written += other.written
        self._finished += other._finished
        self.current = other.current
        other.current, other.written, other._finished = None, [], []

    def discard(self) -> None:
        for file in [*self._finished, *([self.current] if self.current else [])]:
            file.discard()
        self.current, self.written, self._finished = None, [], []
