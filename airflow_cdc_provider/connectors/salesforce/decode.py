"""Change events → stream items. Pure: what it has to ask (schemas, descriptions) it is given as functions."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from airflow_cdc_provider.connectors.salesforce.event_schema import EventSchema
from airflow_cdc_provider.connectors.salesforce.events import Delivery, Event, Undecodable
from airflow_cdc_provider.connectors.salesforce.header import GAPS, WITHOUT_BODY, ChangeType, Header, header_of
from airflow_cdc_provider.connectors.salesforce.ids import full_id, is_id, stands_for_many
from airflow_cdc_provider.connectors.salesforce.layout import Image
from airflow_cdc_provider.connectors.salesforce.positions import Place, position_of
from airflow_cdc_provider.connectors.salesforce.tables import Table
from airflow_cdc_provider.connectors.salesforce.transactions import Transactions
from airflow_cdc_provider.connectors.salesforce.types import Described
from airflow_cdc_provider.connectors.salesforce.unreadable import Unreadable
from airflow_cdc_provider.connectors.source import Boundary, Ignored, StreamItem
from airflow_cdc_provider.core.changes import ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.plain import to_plain
from airflow_cdc_provider.core.steps import TableTask
from airflow_cdc_provider.core.tables import TableSchema

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Decoder:
    """Feed it deliveries in order; it appends what they mean to ``items``. ``overflowed`` is set behind the end of a
    transaction with an event that stands for a whole table: there the window has to end."""

    def __init__(
        self,
        tasks: Sequence[TableTask],
        describe: Callable[[str], Described],
        event_schema: Callable[[str], EventSchema],
        channel: str,
        transactions: Transactions,
    ) -> None:
        self.items: list[StreamItem | Undecodable] = []
        self.overflowed = False
        self._tables = {task.table: Table(task, describe) for task in tasks}
        self._event_schema = event_schema
        self._channel = channel
        self._transactions = transactions
        self._overflow_met = False

    def feed(self, delivery: Delivery) -> None:
        for event in delivery.events:
            self._feed(event)
            if self.overflowed:
                return
        if not delivery.events:
            self._end(self._transactions.rest(delivery.latest, delivery.at_s))

    def _feed(self, event: Event) -> None:
        read = self._read(event)
        if read.header is None:
            self._transactions.meet_unknown(event.replay_id)
            self.items.append(Undecodable(self._channel, event, read.reason))
            return
        at_s = read.header.committed_ms // 1000
        self._end(self._transactions.meet(read.header.transaction, event.replay_id, at_s))
        if self.overflowed:
            return
        try:
            if read.reason:
                raise Unreadable(read.reason)
            self.items += self._told(event, read, read.header)
        except Unreadable as error:
            self.items.append(self._undecodable(event, read.header, str(error)))

    def _read(self, event: Event) -> _Read:
        """As much of the event as is needed, and why not the rest. What says all in its header is read no further, and
        neither are objects that we do not copy."""
        try:
            schema = self._event_schema(event.schema_id)
        except Unreadable as error:
            return _Read(reason=str(error))
        try:
            values, at = schema.header(event.payload)
            header = header_of(values)
        except Unreadable as error:
            return _Read(schema, reason=str(error))
        if header.entity not in self._tables or header.change in WITHOUT_BODY:
            return _Read(schema, header)
        try:
            return _Read(schema, header, schema.body(event.payload, at))
        except Unreadable as error:
            return _Read(schema, header, reason=str(error))

    def _end(self, place: Place | None) -> None:
        if place is not None:
            self.items.append(Boundary(position_of(self._channel, place)))
            self.overflowed = self._overflow_met

    def _told(self, event: Event, read: _Read, header: Header) -> list[StreamItem]:
        """The change type decides before the ids are looked at."""
        table = self._tables.get(header.entity)
        if table is None:
            return [Ignored(len(header.ids))]
        assert read.schema is not None
        layout = table.layout(read.schema)
        make = _Records(header, table.schema, self._transactions, event.replay_id)
        if table.unannounced():
            self.items.append(table.schema)
            if table.is_change():
                self.items.append(make.schema())
        if header.change == ChangeType.GAP_OVERFLOW or any(map(stands_for_many, header.ids)):
            self._overflow_met = True
            return [make.control(Operation.OVERFLOW, None)]
        ids = [_record_id(one) for one in header.ids]
        if header.change in GAPS:
            return [make.control(Operation.GAP, one) for one in ids]
        match header.change:
            case ChangeType.DELETE:
                return [make.gone(one) for one in ids]
            case ChangeType.UPDATE:
                image = layout.changed(read.values, header)
                return [make.row(Operation.UPDATE, i, image) for i in ids] if not image.empty else [Ignored(len(ids))]
            case ChangeType.CREATE:
                image = layout.whole(read.values)
                return [make.row(Operation.UPSERT, one, image) for one in ids]
            case ChangeType.UNDELETE:
                image = layout.whole(read.values)
                if image.empty:  # it says only that there is a record again
                    return [make.control(Operation.GAP, one) for one in ids]
                return [make.row(Operation.UPSERT, one, image) for one in ids]
        raise Unreadable("the change type is unknown")

    def _undecodable(self, event: Event, header: Header, reason: str) -> Undecodable:
        ids = tuple(full_id(one) for one in header.ids if is_id(one))
        return Undecodable(self._channel, event, reason, header.entity, ids, header.transaction)


@dataclass(frozen=True)
class _Read:
    schema: EventSchema | None = None
    header: Header | None = None
    values: dict[str, Any] = field(default_factory=dict)
    reason: str = ""


def _record_id(text: str) -> str:
    try:
        return full_id(text)
    except ValueError as error:
        raise Unreadable("the header names a record by what is no id") from error


@lru_cache(maxsize=256)
def _moment(ms: int) -> datetime:
    """Events carry whole seconds, so neighbours share theirs."""
    return EPOCH + timedelta(milliseconds=ms)


class _Records:
    """Makes the change records of one event."""

    def __init__(self, header: Header, schema: TableSchema, transactions: Transactions, replay_id: bytes) -> None:
        self._header = header
        self._schema = schema
        self._transactions = transactions
        self._commit_ts = _moment(header.committed_ms)
        self._position = f'{{"replay_id":"{b64encode(replay_id).decode("ascii")}"}}'

    def row(self, op: Operation, record_id: str, image: Image) -> ChangeRecord:
        """A created record is an upsert, too: ids are never used again, so a row that is there is the same record, and
        keeps what the event does not carry."""
        key = f'["{record_id}"]'
        return self._record(op, record_id, key, key, image.after(record_id), image.complete, image)

    def gone(self, record_id: str) -> ChangeRecord:
        return self._record(Operation.DELETE, record_id, f'["{record_id}"]', None, None, False, None)

    def control(self, op: Operation, record_id: str | None) -> ChangeRecord:
        """``after`` tells the change type that Salesforce gave: a gap may hide a delete."""
        after = canonical({"change_type": self._header.change})
        return self._record(op, record_id or "*", None, record_id and f'["{record_id}"]', after, False, None)

    def schema(self) -> ChangeRecord:
        record = self._record(Operation.SCHEMA, "*", None, None, canonical(to_plain(self._schema)), False, None)
        return replace(record, event_id=f"{record.event_id}:{self._schema.schema_id}")

    def _record(
        self,
        op: Operation,
        record_id: str,
        key_before: str | None,
        key: str | None,
        after: str | None,
        complete: bool,
        image: Image | None,
    ) -> ChangeRecord:
        """All fields by place: this runs once per row."""
        header = self._header
        return ChangeRecord(
            header.entity,
            op,
            self._transactions.next_order(header.sequence),
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
            image.warnings if image else (),
        )
