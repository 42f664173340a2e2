"""Decodes the rows of a change table to the items of a stream. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.rows import Row, split_key_change
from airflow_cdc_provider.connectors.source import HoleFound, Ignored, StreamItem
from airflow_cdc_provider.connectors.sources.sqlserver.dead_letters import undecoded_record
from airflow_cdc_provider.connectors.sources.sqlserver.positions import key_after, lsn_of, lsn_text, order_key
from airflow_cdc_provider.connectors.sources.sqlserver.row_images import (
    AFTER,
    BEFORE,
    DELETE,
    INSERT,
    UNREADABLE,
    Cells,
    RowChange,
    RowReader,
    row_change,
)
from airflow_cdc_provider.core.errors import IntegrityBroken
from airflow_cdc_provider.core.log.change_log import UNLOGGED
from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS, ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.serde import to_plain

NO_ROW = Row(Operation.UNREADABLE, None, None, None, None, False, False, ())
OPERATIONS = frozenset({DELETE, INSERT, BEFORE, AFTER})


class ChangeRow(NamedTuple):
    """A row of a change table: commit LSN, command, LSN of the row, operation; ``bits``: of the large columns."""

    commit: int
    command: int
    row: int
    operation: int
    cells: Cells
    bits: Cells


class ChangeDecoder:
    """For the rows of one change table, in their order. ``times``: commit LSN → commit time in UTC. ``doubly_held``:
    two rows may hold a key within a transaction."""

    def __init__(self, reader: RowReader, epoch: int, times: Mapping[int, datetime], doubly_held: bool) -> None:
        self._reader, self._epoch, self._times = reader, epoch, times
        self._width = len(reader.sources)
        self._large = [at for at, column in enumerate(reader.sources) if column.large]
        self._commit, self._number = 0, 0
        self._two_per_key = doubly_held and bool(self._large)
        self._arrived: dict[str, tuple[int, bool]] = {}
        self._deleted: ChangeRow | None = None

    def decode(self, rows: Iterable[Sequence[Any]]) -> Iterator[StreamItem]:
        """Raises IntegrityBroken (SRC030) if the rows of an update are not adjacent."""
        before: ChangeRow | None = None
        for row in map(self._change_row, rows):
            if (before is not None) is not (row.operation == AFTER) or row.operation not in OPERATIONS:
                raise _not_a_change(self._reader.table, row)
            if row.operation == BEFORE:
                before = row
                continue
            if before is not None and before[:3] != row[:3]:
                raise _not_a_change(self._reader.table, row)
            yield from self._decode(before or row, row)
            before = None
        if before is not None:
            raise _not_a_change(self._reader.table, before)

    def _change_row(self, row: Sequence[Any]) -> ChangeRow:
        commit, command, at, operation = row[:4]
        cells = row[4 : 4 + self._width]
        return ChangeRow(lsn_of(commit), command or 0, lsn_of(at), operation, cells, row[4 + self._width :])

    def _decode(self, first: ChangeRow, row: ChangeRow) -> Iterator[StreamItem]:
        """``first``: the row before an update, else ``row`` itself."""
        if row.commit != self._commit:
            self._commit, self._number, self._deleted = row.commit, 0, None
            self._arrived.clear()
        self._number += 1
        sources = self._reader.sources
        change = row_change(row.operation, sources, first.cells, row.cells, row.bits)
        yield from self._lost_large_values(row)
        try:
            read = self._reader.read(change)
        except UNREADABLE as error:
            departed, what = undecoded_record(self._reader, change, error)
            yield from self._undecoded(row, departed, what.key, canonical(to_plain(what.record)))
            return
        if read is None:
            yield Ignored(1)
            return
        if self._two_per_key:
            yield from self._passing_rows(row, change, read)
        yield from self._records(row, read)

    def _lost_large_values(self, row: ChangeRow) -> Iterator[HoleFound]:
        """An update of the key may be captured as a delete and an insert of one row LSN. Whether the insert has large
        values that the update did not change is not documented."""
        deleted, self._deleted = self._deleted, row if row.operation == DELETE else None
        if row.operation != INSERT or deleted is None or (deleted.commit, deleted.row) != (row.commit, row.row):
            return
        sources = self._reader.sources
        missing = [
            sources[at].name
            for at in self._large
            if row.cells[at] is None
            and (deleted.cells[at] is not None or sources[at].type in ("text", "ntext", "image"))
        ]
        if missing:
            detail = f"an update was captured as a delete and an insert, maybe without its {', '.join(missing)}"
            yield self._hole(row, detail)

    def _passing_rows(self, row: ChangeRow, change: RowChange, read: Row) -> Iterator[HoleFound]:
        """Two rows may hold a key within a transaction. Whole images tell which one left it; without large values, the
        other columns may."""
        moved = read.key_changed
        if change.old is not None and (arrived := self._arrived.get(str(read.key_before))):
            if arrived != (self._plain(change.old), False):
                yield self._hole(row, f"two rows of {self._reader.table} may have held one key in a transaction, and "
                                 "their large values are not in every change")  # fmt: skip
            if moved or change.new is None:
                del self._arrived[str(read.key_before)]
        if change.new is not None and (moved or change.old is None or read.key in self._arrived):
            self._arrived[str(read.key)] = self._plain(change.new), moved

    def _plain(self, cells: Cells) -> int:
        """A hash of the values that every change has."""
        return hash(tuple(cell for at, cell in enumerate(cells) if at not in self._large))

    def _hole(self, row: ChangeRow, detail: str) -> HoleFound:
        return HoleFound(self._reader.table, UNLOGGED, key_after(self._epoch, row.commit), detail)

    def _records(self, row: ChangeRow, read: Row) -> Iterator[ChangeRecord]:
        if read.key_changed:
            for phase, half in split_key_change(read):
                yield self._record(row, half, phase, True)
            return
        yield self._record(row, read, 0, False)

    def _undecoded(self, row: ChangeRow, departed: Row | None, key: str | None, after: str) -> Iterator[ChangeRecord]:
        if departed is not None:
            yield self._record(row, departed, DEPARTS, True)
        record = self._record(row, NO_ROW, ARRIVES if departed else 0, departed is not None)
        yield replace(record, key=key, after=after)

    def _record(self, row: ChangeRow, read: Row, phase: int, linked: bool) -> ChangeRecord:
        order = order_key(self._epoch, row.commit, row.command, row.row, row.operation)
        return ChangeRecord(
            self._reader.table,
            read.op,
            f"{order}{phase:02x}",
            self._reader.schema_id,
            read.key_before,
            read.key,
            read.before,
            read.after,
            read.before_complete,
            read.after_complete,
            phase=phase if linked else None,
            link_id=order if linked else None,
            tx_id=lsn_text(row.commit),
            tx_seq=self._number,
            commit_ts=self._times.get(row.commit),
            position=f'{{"lsn":"{lsn_text(row.commit)}","row":"{lsn_text(row.row)}"}}',
            event_id=f"{order}{phase:02x}",
            warnings=read.warnings,
        )


def _not_a_change(table: str, row: ChangeRow) -> IntegrityBroken:
    return IntegrityBroken.of(
        "SRC030",
        f"a change table of {table} has rows that are not a delete, an insert or a whole update",
        where=f"{table}, commit {lsn_text(row.commit)}, row {lsn_text(row.row)}",
        found=f"__$operation = {row.operation}",
        allowed="1 (delete), 2 (insert), or 3 and 4 together (update)",
        data="the rows are still in the change table; the window was not sealed",
        do="check that this provider version supports the source version; resync the table if the source is right",
    )
