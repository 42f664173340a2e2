"""The change records that one event makes. Pure."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from airflow_cdc_provider.connectors.sources.salesforce.dead_letter_codec import DecodeError
from airflow_cdc_provider.connectors.sources.salesforce.header import GAPS, ChangeType, Header
from airflow_cdc_provider.connectors.sources.salesforce.ids import full_id
from airflow_cdc_provider.connectors.sources.salesforce.table_layout import EventImage, EventLayout
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.schema import TableSchema

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class EventRecords:
    """Makes the records of the event ``replay_id``. ``next_order`` turns its place in the transaction into an order
    key, a new one for each record."""

    def __init__(self, header: Header, schema: TableSchema, next_order: Callable[[int], str], replay_id: bytes) -> None:
        self._header = header
        self._schema = schema
        self._next_order = next_order
        self._commit_ts = _moment(header.committed_ms)
        self._position = position_json(replay_id)

    def changes(self, layout: EventLayout, values: dict[str, Any]) -> list[ChangeRecord]:
        """None where nothing changed that is copied. Raises DecodeError."""
        header = self._header
        ids = _record_ids(header.ids)
        if header.change in GAPS:
            return [self.control(Operation.GAP, one) for one in ids]
        match header.change:
            case ChangeType.DELETE:
                return [self._gone(one) for one in ids]
            case ChangeType.UPDATE:
                image = layout.changed(values, header)
                return [] if image.empty else [self._row(Operation.UPDATE, one, image) for one in ids]
            case ChangeType.CREATE:
                image = layout.whole(values)
                return [self._row(Operation.UPSERT, one, image) for one in ids]
            case ChangeType.UNDELETE:
                image = layout.whole(values)
                if image.empty:  # it says only that there is a record again
                    return [self.control(Operation.GAP, one) for one in ids]
                return [self._row(Operation.UPSERT, one, image) for one in ids]
        raise DecodeError("the change type is unknown")

    def control(self, op: Operation, record_id: str | None) -> ChangeRecord:
        """``after`` tells the change type that Salesforce gave: a gap may hide a delete."""
        after = canonical({"change_type": self._header.change})
        return self._record(op, record_id or "*", None, record_id and f'["{record_id}"]', after, False, None)

    def schema(self) -> ChangeRecord:
        record = self._record(Operation.SCHEMA, "*", None, None, canonical(to_plain(self._schema)), False, None)
        return replace(record, event_id=f"{record.event_id}:{self._schema.schema_id}")

    def put_aside(self, record_id: str | None, after: str) -> ChangeRecord:
        """A change that cannot be read."""
        key = record_id and f'["{record_id}"]'
        return self._record(Operation.UNREADABLE, record_id or "*", None, key, after, False, None)

    def _row(self, op: Operation, record_id: str, image: EventImage) -> ChangeRecord:
        """A created record is an upsert, too: ids are never used again, so a row that is there is the same record, and
        keeps what the event does not carry."""
        key = f'["{record_id}"]'
        return self._record(op, record_id, key, key, image.after(record_id), image.complete, image)

    def _gone(self, record_id: str) -> ChangeRecord:
        return self._record(Operation.DELETE, record_id, f'["{record_id}"]', None, None, False, None)

    def _record(
        self,
        op: Operation,
        record_id: str,
        key_before: str | None,
        key: str | None,
        after: str | None,
        complete: bool,
        image: EventImage | None,
    ) -> ChangeRecord:
        """All fields by place: this runs once per row."""
        header = self._header
        return ChangeRecord(
            header.entity,
            op,
            self._next_order(header.sequence),
            self._schema.schema_id,
            key_before,
            key,
            None,
            after,
            False,
            complete,
            image.refetch if image else (),
            None,
            None,
            None,
            header.transaction,
            header.sequence,
            self._commit_ts,
            self._position,
            f"{header.transaction}:{header.sequence}:{header.entity}:{record_id}:{header.change}",
            "none",
        )


def position_json(replay_id: bytes) -> str:
    return f'{{"replay_id":"{b64encode(replay_id).decode("ascii")}"}}'


def _record_ids(texts: Sequence[str]) -> list[str]:
    if not texts:
        raise DecodeError("the header names no record")
    try:
        return [full_id(one) for one in texts]
    except ValueError as error:
        raise DecodeError("the header names a record by what is no id") from error


@lru_cache(maxsize=256)
def _moment(ms: int) -> datetime:
    """Events carry whole seconds, so neighbours share theirs."""
    return EPOCH + timedelta(milliseconds=ms)
