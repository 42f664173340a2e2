"""The records of one table on their way into a window: in memory, in files of whole transactions, in files of an open
one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from spark_jobs.windows.record_files import RecordFile, WrittenFile


class TableFiles:
    """Records behind the mark ``whole`` belong to the open transaction. Large open transactions go to files of their
    own, which join the others when the transaction ends."""

    def __init__(self, new_file: Callable[[], RecordFile], file_records: int) -> None:
        self.rows: list[ChangeRecord | Block] = []
        self._whole = 0
        self._closed = _Chain(new_file, file_records)
        self._open = _Chain(new_file, file_records)

    def end_transaction(self) -> None:
        self._whole = len(self.rows)
        if self._open.used:
            self._closed.take_over(self._open)

    def spill(self, with_open: bool) -> None:
        """Move records from memory to files: those of ended transactions, and on demand those of the open one."""
        self._closed.append(self.rows[: self._whole])
        del self.rows[: self._whole]
        self._whole = 0
        if with_open:
            self._open.append(self.rows)
            self.rows.clear()

    @property
    def file_is_open(self) -> bool:
        return self._closed.current is not None or self._open.current is not None

    def close_files(self) -> None:
        self._closed.close()
        self._open.close()

    def finish(self) -> tuple[WrittenFile, ...]:
        """The files of ended transactions; what is open is thrown away."""
        self.spill(with_open=False)
        self._closed.close()
        self._open.discard()
        return tuple(self._closed.written)

    def discard(self) -> None:
        self._closed.discard()
        self._open.discard()


class _Chain:
    """Files one after the other, each of at most ``file_records`` and one row group more."""

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

    def take_over(self, other: _Chain) -> None:
        """Go on with the files of ``other``, which is empty afterwards."""
        self.close()
        self.written += other.written
        self._finished += other._finished
        self.current = other.current
        other.current, other.written, other._finished = None, [], []

    def discard(self) -> None:
        for file in [*self._finished, *([self.current] if self.current else [])]:
            file.discard()
        self.current, self.written, self._finished = None, [], []
