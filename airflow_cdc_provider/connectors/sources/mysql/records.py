"""Change records of the rows of one event. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from airflow_cdc_provider.connectors.rows import Row, split_key_change
from airflow_cdc_provider.connectors.sources.mysql.binlog import BinlogEvent
from airflow_cdc_provider.connectors.sources.mysql.positions import order_prefix
from airflow_cdc_provider.connectors.sources.mysql.row_images import RowReader
from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS, ChangeRecord, Operation

EMPTY = Row(Operation.UNREADABLE, None, None, None, None, False, False, ())


def place_text(event: BinlogEvent) -> str:
    return f'{{"file":"{event.file}","pos":{event.start}}}'


class RowRecords:
    """``at`` says which row is next: its number in the event, and in the transaction."""

    def __init__(self, layout: RowReader, epoch: int, event: BinlogEvent, tx_id: str) -> None:
        self._layout, self._tx_id = layout, tx_id
        self._prefix = order_prefix(epoch, event.file, event.start)
        self._commit_ts = datetime.fromtimestamp(event.timestamp, UTC)
        self._position = place_text(event)
        self._order, self._tx_seq = "", 0

    def at(self, number: int, tx_seq: int) -> None:
        self._order, self._tx_seq = f"{self._prefix}{number:08x}", tx_seq

    def of(self, row: Row) -> list[ChangeRecord]:
        """One; two where the key changed. An inserted row of which not all is known can only be one that arrives."""
        if row.key_changed:
            return [self._record(half, phase, True) for phase, half in split_key_change(row)]
        partial = row.op == Operation.INSERT and not row.after_complete
        return [self._record(row, ARRIVES if partial else 0, partial)]

    def put_aside(self, gone: Row | None, key: str | None, told: str) -> list[ChangeRecord]:
        """A row that moved leaves its old key all the same."""
        left = [self._record(gone, DEPARTS, True)] if gone else []
        record = self._record(EMPTY, ARRIVES if gone else 0, gone is not None)
        return [*left, replace(record, key=key, after=told)]

    def _record(self, row: Row, phase: int, linked: bool) -> ChangeRecord:
        """All fields by place: this runs once per row."""
        order_key = f"{self._order}{phase:02x}"
        op, key_before, key, before, after, before_complete, after_complete, warnings, _ = row
        return ChangeRecord(
            self._layout.table,
            op,
            order_key,
            self._layout.schema_id,
            key_before,
            key,
            before,
            after,
            before_complete,
            after_complete,
            (),
            phase if linked else None,
            self._order if linked else None,
            None,
            self._tx_id,
            self._tx_seq,
            self._commit_ts,
            self._position,
            order_key,
            "none",
            warnings,
        )
