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


def position_text(event: BinlogEvent) -> str:
    return f'{{"file":"{event.file}","pos":{event.start}}}'


class RecordBuilder:
    """Builds the change records of one event's rows. Call ``start_row`` before each row."""

    def __init__(self, reader: RowReader, epoch: int, event: BinlogEvent, tx_id: str) -> None:
        self._reader, self._tx_id = reader, tx_id
        self._prefix = order_prefix(epoch, event.file, event.start)
        self._commit_ts = datetime.fromtimestamp(event.timestamp, UTC)
        self._position = position_text(event)
        self._order, self._tx_seq = "", 0

    def start_row(self, number: int, tx_seq: int) -> None:
        """``number`` counts the rows of the event, ``tx_seq`` those of the transaction."""
        self._order, self._tx_seq = f"{self._prefix}{number:08x}", tx_seq

    def build(self, row: Row) -> list[ChangeRecord]:
        """One record, or two if the key changed. An insert with a partial image has the phase of an arriving row."""
        if row.key_changed:
            return [self._record(half, phase, True) for phase, half in split_key_change(row)]
        partial = row.op == Operation.INSERT and not row.after_complete
        return [self._record(row, ARRIVES if partial else 0, partial)]

    def build_unreadable(self, departed: Row | None, key: str | None, undecoded: str) -> list[ChangeRecord]:
        """``departed``: the row under its old key, if the key changed."""
        departure = [self._record(departed, DEPARTS, True)] if departed else []
        record = self._record(EMPTY, ARRIVES if departed else 0, departed is not None)
        return [*departure, replace(record, key=key, after=undecoded)]

    def _record(self, row: Row, phase: int, linked: bool) -> ChangeRecord:
        """Positional arguments are faster: this runs once per row."""
        order_key = f"{self._order}{phase:02x}"
        op, key_before, key, before, after, before_complete, after_complete, warnings, _ = row
        return ChangeRecord(
            self._reader.table,
            op,
            order_key,
            self._reader.schema_id,
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
