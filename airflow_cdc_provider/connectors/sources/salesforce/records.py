"""Make the change records of an event. Pure."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from airflow_cdc_provider.connectors.sources.salesforce.errors import DecodeError
from airflow_cdc_provider.connectors.sources.salesforce.header import GAPS, ChangeType, Header
from airflow_cdc_provider.connectors.sources.salesforce.ids import full_id
from airflow_cdc_provider.connectors.sources.salesforce.table_layout import EventImage, EventLayout
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.table.schema import TableSchema

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class EventRecords:
    """``next_order_key`` returns a new order key for a sequence number within the transaction."""

    def __init__(
        self, header: Header, schema: TableSchema, next_order_key: Callable[[int], str], replay_id: bytes
    ) -> None:
        self._header = header
        self._schema = schema
        self._next_order_key = next_order_key
        self._commit_ts = _commit_time(header.committed_ms)
        self._position = position_json(replay_id)

    def changes(self, layout: EventLayout, values: dict[str, Any]) -> list[ChangeRecord]:
        """Empty if no replicated column changed. Raises DecodeError."""
        header = self._header
        ids = _record_ids(header.ids)
        if header.change in GAPS:
            return [self.control(Operation.GAP, record_id) for record_id in ids]
        match header.change:
            case ChangeType.DELETE:
                return [self._delete(record_id) for record_id in ids]
            case ChangeType.UPDATE:
                image = layout.partial_image(values, header)
                return [] if image.empty else [self._row(Operation.UPDATE, record_id, image) for record_id in ids]
            case ChangeType.CREATE:
                image = layout.full_image(values)
                return [self._row(Operation.UPSERT, record_id, image) for record_id in ids]
            case ChangeType.UNDELETE:
                image = layout.full_image(values)
                if image.empty:  # the event may have no values
                    return [self.control(Operation.GAP, record_id) for record_id in ids]
                return [self._row(Operation.UPSERT, record_id, image) for record_id in ids]
        raise DecodeError("the change type is unknown")

    def control(self, op: Operation, record_id: str | None) -> ChangeRecord:
        """``after`` contains Salesforce's change type, because a gap may be a delete."""
        after = canonical({"change_type": self._header.change})
        return self._record(op, record_id or "*", None, record_id and f'["{record_id}"]', after, False, None)

    def schema(self) -> ChangeRecord:
        record = self._record(Operation.SCHEMA, "*", None, None, canonical(self._schema.plain()), False, None)
        return replace(record, event_id=f"{record.event_id}:{self._schema.schema_id}")

    def unreadable(self, record_id: str | None, after: str) -> ChangeRecord:
        key = record_id and f'["{record_id}"]'
        return self._record(Operation.UNREADABLE, record_id or "*", None, key, after, False, None)

    def _row(self, op: Operation, record_id: str, image: EventImage) -> ChangeRecord:
        """CREATE is an upsert, too: ids are never reused, so an existing row is the same record, and keeps the columns
        that the event does not carry."""
        key = f'["{record_id}"]'
        return self._record(op, record_id, key, key, image.after(record_id), image.complete, image)

    def _delete(self, record_id: str) -> ChangeRecord:
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
        """Positional arguments are faster than keywords, and this runs once per row."""
        header = self._header
        return ChangeRecord(
            header.entity,
            op,
            self._next_order_key(header.sequence),
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
        raise DecodeError("the header has no record ids")
    try:
        return [full_id(text) for text in texts]
    except ValueError as error:
        raise DecodeError("the header has a record id that is not valid") from error


@lru_cache(maxsize=256)
def _commit_time(ms: int) -> datetime:
    """Cached because events carry whole seconds, so successive events have the same."""
    return EPOCH + timedelta(milliseconds=ms)
