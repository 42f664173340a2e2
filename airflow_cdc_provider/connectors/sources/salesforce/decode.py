"""Change events → stream items. Pure: what it has to ask (schemas, descriptions) it is given as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_cdc_provider.connectors.source import Boundary, Ignored, StreamItem
from airflow_cdc_provider.connectors.sources.salesforce.dead_letter_codec import DecodeError
from airflow_cdc_provider.connectors.sources.salesforce.dead_letters import kept, without_header
from airflow_cdc_provider.connectors.sources.salesforce.event_schema import EventSchema
from airflow_cdc_provider.connectors.sources.salesforce.events import ChannelEvent, Delivery
from airflow_cdc_provider.connectors.sources.salesforce.header import GAPS, WITHOUT_BODY, ChangeType, Header, header_of
from airflow_cdc_provider.connectors.sources.salesforce.ids import full_id, is_id, stands_for_many
from airflow_cdc_provider.connectors.sources.salesforce.positions import ChannelPosition, position_of
from airflow_cdc_provider.connectors.sources.salesforce.records import EventRecords
from airflow_cdc_provider.connectors.sources.salesforce.tables import ObjectTable
from airflow_cdc_provider.connectors.sources.salesforce.transactions import Transactions
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import Operation


class EventDecoder:
    """Feed it deliveries in order; it appends what they mean to ``items``. ``overflowed`` is set behind the end of a
    transaction with an event that stands for a whole table: there the window has to end."""

    def __init__(
        self,
        tasks: Sequence[TableTask],
        describe: Callable[[str], ObjectSchema],
        event_schema: Callable[[str], EventSchema],
        channel: str,
        transactions: Transactions,
    ) -> None:
        self.items: list[StreamItem] = []
        self.overflowed = False
        self._tables = {task.table: ObjectTable(task, describe) for task in tasks}
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

    def _feed(self, event: ChannelEvent) -> None:
        read = self._read(event)
        if read.header is None:
            self._transactions.meet_unknown(event.replay_id)
            self._keep_without_header(event, read)
            return
        at_s = read.header.committed_ms // 1000
        self._end(self._transactions.meet(read.header.transaction, event.replay_id, at_s))
        if self.overflowed:
            return
        table = self._tables.get(read.header.entity)
        if table is None:
            self.items.append(Ignored(len(read.header.ids), read.header.entity))
            return
        try:
            self._tell(event, read, read.header, table)
        except DecodeError as error:
            self._keep(event, read, read.header, table, str(error))

    def _read(self, event: ChannelEvent) -> _Read:
        """As much of the event as is needed, and why not the rest. What says all in its header is read no further, and
        neither are objects that we do not copy."""
        try:
            schema = self._event_schema(event.schema_id)
        except DecodeError as error:
            return _Read(reason=str(error))
        try:
            values, at = schema.header(event.payload)
            header = header_of(values)
        except DecodeError as error:
            return _Read(schema, reason=str(error))
        if header.entity not in self._tables or header.change in WITHOUT_BODY:
            return _Read(schema, header)
        try:
            return _Read(schema, header, schema.body(event.payload, at))
        except DecodeError as error:
            return _Read(schema, header, reason=str(error))

    def _end(self, place: ChannelPosition | None) -> None:
        if place is not None:
            self.items.append(Boundary(position_of(self._channel, place)))
            self.overflowed = self._overflow_met

    def _tell(self, event: ChannelEvent, read: _Read, header: Header, table: ObjectTable) -> None:
        """The change type decides before the ids are looked at, and the ids before the fields."""
        assert read.schema is not None
        layout = table.layout(read.schema)
        make = self._announced(event, header, table)
        nobody = header.change in GAPS and not header.ids
        if header.change == ChangeType.GAP_OVERFLOW or nobody or any(map(stands_for_many, header.ids)):
            self._overflow_met = True
            self.items.append(make.control(Operation.OVERFLOW, None))
            return
        if read.reason:
            raise DecodeError(read.reason)
        self.items += make.changes(layout, read.values) or [Ignored(len(header.ids))]

    def _announced(self, event: ChannelEvent, header: Header, table: ObjectTable) -> EventRecords:
        make = EventRecords(header, table.schema, self._transactions.next_order, event.replay_id)
        if table.unannounced():
            self.items.append(table.schema)
            if table.is_change():
                self.items.append(make.schema())
        return make

    def _keep(self, event: ChannelEvent, read: _Read, header: Header, table: ObjectTable, reason: str) -> None:
        """One record for each that the event names; one that could be any, where it names something else."""
        make = self._announced(event, header, table)
        after = kept(event, read.schema, reason, header.change)
        named = [full_id(one) if is_id(one) else None for one in header.ids] or [None]
        self.items += [make.put_aside(one, after) for one in dict.fromkeys(named)]

    def _keep_without_header(self, event: ChannelEvent, read: _Read) -> None:
        """It belongs to the object that its schema is of; to any of ours, where not even that can be told."""
        owner = read.schema.entity if read.schema else ""
        owners = [self._tables[owner]] if owner in self._tables else [] if owner else list(self._tables.values())
        for table in owners:
            if table.unannounced():
                self.items.append(table.schema)
            order_key = self._transactions.next_order()
            self.items.append(without_header(event, read.schema, read.reason, table.schema, order_key))
        if not owners:
            self.items.append(Ignored(1))


@dataclass(frozen=True)
class _Read:
    schema: EventSchema | None = None
    header: Header | None = None
    values: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
