"""Decode change events into stream items. Pure: event schemas and object descriptions come from functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_cdc_provider.connectors.source import Boundary, Ignored, StreamItem
from airflow_cdc_provider.connectors.sources.salesforce.dead_letters import record_without_header, undecoded_event
from airflow_cdc_provider.connectors.sources.salesforce.errors import DecodeError, MoreDigitsThanDescribed
from airflow_cdc_provider.connectors.sources.salesforce.event_schema import EventSchema
from airflow_cdc_provider.connectors.sources.salesforce.events import ChannelEvent, Delivery
from airflow_cdc_provider.connectors.sources.salesforce.header import (
    GAPS,
    WITHOUT_BODY,
    ChangeType,
    Header,
    parse_header,
)
from airflow_cdc_provider.connectors.sources.salesforce.ids import full_id, is_id, is_wildcard
from airflow_cdc_provider.connectors.sources.salesforce.positions import ChannelPosition, position_of
from airflow_cdc_provider.connectors.sources.salesforce.records import EventRecords
from airflow_cdc_provider.connectors.sources.salesforce.tables import ObjectTable
from airflow_cdc_provider.connectors.sources.salesforce.transactions import Transactions
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import Operation


class EventDecoder:
    """Takes deliveries in order and appends the decoded records to ``items``. ``ended`` is set where the window must
    end: after a transaction with an overflow event, which stands for a whole table, and after the first transaction
    that was committed later than ``until_s`` (since 1970)."""

    def __init__(
        self,
        tasks: Sequence[TableTask],
        describe: Callable[[str], ObjectSchema],
        event_schema: Callable[[str], EventSchema],
        channel: str,
        transactions: Transactions,
        until_s: float = math.inf,
    ) -> None:
        self.items: list[StreamItem] = []
        self.ended = False
        self._tables = {task.table: ObjectTable(task, describe) for task in tasks}
        self._event_schema = event_schema
        self._channel = channel
        self._transactions = transactions
        self._until_s = until_s
        self._overflow_seen = False

    def feed(self, delivery: Delivery) -> None:
        for event in delivery.events:
            self._feed(event)
            if self.ended:
                return
        if not delivery.events:
            self._append_boundary(self._transactions.finish(delivery.latest, delivery.at_s))

    def _feed(self, event: ChannelEvent) -> None:
        parsed = self._parse(event)
        if parsed.header is None:
            self._transactions.add_unknown(event.replay_id)
            self._quarantine_without_header(event, parsed)
            return
        at_s = parsed.header.committed_ms // 1000
        self._append_boundary(self._transactions.add(parsed.header.transaction, event.replay_id, at_s))
        if self.ended:
            return
        table = self._tables.get(parsed.header.entity)
        if table is None:
            self.items.append(Ignored(len(parsed.header.ids), parsed.header.entity))
            return
        try:
            self._append_changes(event, parsed, parsed.header, table)
        except DecodeError as error:
            self._quarantine(event, parsed, parsed.header, table, str(error))

    def _parse(self, event: ChannelEvent) -> _ParsedEvent:
        """The body is parsed only if the change type has one and the object is replicated."""
        try:
            schema = self._event_schema(event.schema_id)
        except DecodeError as error:
            return _ParsedEvent(error=str(error))
        try:
            values, body_offset = schema.header(event.payload)
            header = parse_header(values)
        except DecodeError as error:
            return _ParsedEvent(schema, error=str(error))
        if header.entity not in self._tables or header.change in WITHOUT_BODY:
            return _ParsedEvent(schema, header)
        try:
            return _ParsedEvent(schema, header, schema.body(event.payload, body_offset))
        except DecodeError as error:
            return _ParsedEvent(schema, header, error=str(error))

    def _append_boundary(self, position: ChannelPosition | None) -> None:
        if position is not None:
            self.items.append(Boundary(position_of(self._channel, position)))
            self.ended = self._overflow_seen or position.at_s > self._until_s

    def _append_changes(self, event: ChannelEvent, parsed: _ParsedEvent, header: Header, table: ObjectTable) -> None:
        """The change type takes precedence over the ids, and the ids over the fields."""
        assert parsed.schema is not None
        layout = table.layout(parsed.schema)
        records = self._records(event, header, table)
        gap_without_ids = header.change in GAPS and not header.ids
        if header.change == ChangeType.GAP_OVERFLOW or gap_without_ids or any(map(is_wildcard, header.ids)):
            self._overflow_seen = True
            self.items.append(records.control(Operation.OVERFLOW, None))
            return
        if parsed.error:
            raise DecodeError(parsed.error)
        try:
            changes = records.changes(layout, parsed.values)
        except MoreDigitsThanDescribed as error:
            table.describe_again(error.column)
            self._append_changes(event, parsed, header, table)
            return
        self.items += changes or [Ignored(len(header.ids))]

    def _records(self, event: ChannelEvent, header: Header, table: ObjectTable) -> EventRecords:
        """Appends the schema of the table before its first record."""
        records = EventRecords(header, table.schema, self._transactions.next_order_key, event.replay_id)
        if table.announce_schema():
            self.items.append(table.schema)
            if table.schema_differs_from_target():
                self.items.append(records.schema())
        return records

    def _quarantine(
        self, event: ChannelEvent, parsed: _ParsedEvent, header: Header, table: ObjectTable, reason: str
    ) -> None:
        """One unreadable record per id of the event; one without key for everything that is no id."""
        records = self._records(event, header, table)
        after = undecoded_event(event, parsed.schema, reason, header.change)
        ids = [full_id(text) if is_id(text) else None for text in header.ids] or [None]
        self.items += [records.unreadable(record_id, after) for record_id in dict.fromkeys(ids)]

    def _quarantine_without_header(self, event: ChannelEvent, parsed: _ParsedEvent) -> None:
        """The event belongs to the object of its schema; without a schema it may belong to any table."""
        entity = parsed.schema.entity if parsed.schema else ""
        tables = [self._tables[entity]] if entity in self._tables else [] if entity else list(self._tables.values())
        for table in tables:
            if table.announce_schema():
                self.items.append(table.schema)
            order_key = self._transactions.next_order_key()
            self.items.append(record_without_header(event, parsed.schema, parsed.error, table.schema, order_key))
        if not tables:
            self.items.append(Ignored(1))


@dataclass(frozen=True)
class _ParsedEvent:
    schema: EventSchema | None = None
    header: Header | None = None
    values: dict[str, Any] = field(default_factory=dict)
    error: str = ""
