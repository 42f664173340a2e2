"""Debezium messages → change records: selects the decoder for the kind of message. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    CONTRADICTION,
    NOT_JSON,
    DecodeError,
    PartialDecode,
    undecoded_record,
)
from airflow_cdc_provider.connectors.decoders.common.images import as_row
from airflow_cdc_provider.connectors.decoders.common.message import (
    DecoderSettings,
    Item,
    Message,
    MessageColumns,
    RenamedTable,
)
from airflow_cdc_provider.connectors.decoders.debezium import control_messages
from airflow_cdc_provider.connectors.decoders.debezium.changes import CODEC, ChangeDecoder
from airflow_cdc_provider.connectors.decoders.debezium.connect_json import ConnectReader, ConnectValue, key_of
from airflow_cdc_provider.connectors.decoders.debezium.message_templates import MessageTemplate, MessageTemplates
from airflow_cdc_provider.connectors.decoders.debezium.options import DebeziumOptions
from airflow_cdc_provider.connectors.decoders.debezium.placeholders import Placeholders
from airflow_cdc_provider.connectors.decoders.debezium.positions import POSITIONS
from airflow_cdc_provider.connectors.decoders.debezium.servers import Servers
from airflow_cdc_provider.connectors.decoders.debezium.snapshots import Snapshots
from airflow_cdc_provider.connectors.decoders.debezium.source_block import (
    position_of,
    source_block,
    source_of,
    table_of,
)
from airflow_cdc_provider.connectors.decoders.debezium.statements import CONNECTORS, payloads_of, read_statements
from airflow_cdc_provider.connectors.decoders.debezium.table_history import (
    TableHistory,
    renamed_tables,
    table_histories,
)
from airflow_cdc_provider.connectors.decoders.debezium.table_layouts import TableLayouts
from airflow_cdc_provider.connectors.decoders.debezium.unwrapped import UnwrappedRows
from airflow_cdc_provider.connectors.schema_registry.framing import starts_with_id
from airflow_cdc_provider.connectors.source import Ignored
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.table.reported_changes import Report, ReportedChanges

REGISTERED = (
    f"{NOT_JSON} not JSON but a message with a registered schema: set `registry` under `source` to the Airflow "
    "connection of the schema registry, or configure the connector with JsonConverter"
)
LEARNED_PER_BATCH = 2
"""The maximum number of templates learned from one batch, per topic."""


class DebeziumDecoder:
    codec = CODEC
    reads_avro = False
    one_table_per_topic = False
    whole_rows_remedy = (
        "configure the connector to send whole documents of {table} to a new topic "
        "(capture.mode = change_streams_update_full), name the topic in the YAML, and run `airflow cdc resync`"
    )
    reported_changes: ClassVar[ReportedChanges] = ReportedChanges(
        add_column=Report.STREAM,
        filled_column=Report.HOLE,
        drop_column=Report.STREAM,
        replace_column=Report.NONE,
        rename_column=Report.NAME,
        widen=Report.STREAM,
        narrow=Report.SNAPSHOT,
        change_key=Report.BAD_RECORD,
        truncate=Report.STREAM,
    )
    changes_with_statements: ClassVar[ReportedChanges] = replace(
        reported_changes, rename_column=Report.STREAM, rename_table=Report.STREAM
    )

    def __init__(self, settings: DecoderSettings) -> None:
        options = from_plain(DebeziumOptions, settings.options)
        self._settings = settings
        self._options = options
        self._reader = ConnectReader()
        layouts = TableLayouts(settings, options, lambda: self._histories)
        placeholders = Placeholders(options.unavailable_value)
        self._layouts = layouts
        self._changes = ChangeDecoder(settings, layouts, placeholders)
        self._templates = MessageTemplates(settings, self._reader, layouts, placeholders)
        self._rows = UnwrappedRows(settings, layouts, placeholders) if options.unwrapped else None
        self.reads_columns = self.tombstones_follow_deletes = self._rows is None

    def renamed_tables(self) -> Mapping[str, RenamedTable]:
        return renamed_tables(self._histories)

    def has_statements(self, message: Message) -> bool:
        sources = (one.get("source") for one in payloads_of([message]) if isinstance(one, dict) and "op" in one)
        return any(isinstance(source, dict) and source.get("connector") in CONNECTORS for source in sources)

    @cached_property
    def _histories(self) -> list[TableHistory]:
        return table_histories(read_statements(payloads_of(self._settings.statements())))

    def snapshot_watch(self) -> Snapshots:
        return Snapshots(self._options.blocking_snapshots)

    def server_watch(self) -> Servers:
        return Servers(self._copied_table)

    def _copied_table(self, table: str) -> str:
        name = self._settings.copied_name(table)
        return name if self._settings.includes(name) else ""

    def decode(self, message: Message) -> list[Item]:
        key = ConnectValue(None)
        try:
            if message.key is not None:
                key = self._reader.read(message.key, key_of(message.topic), message.key_schema)
            if message.reason:
                return [self._unreadable(message, key, message.reason)]
            if message.value is not None:
                value = self._reader.read(message.value, message.topic, message.value_schema)
            elif self._rows is None:
                return [Ignored(1)]  # a tombstone for log compaction; the delete precedes it
            else:
                value = ConnectValue(None)
            if self._rows is not None:
                return self._rows.decode(message, value, key, self._table_of(message.topic))
            return self._decode(message, value, key)
        except DecodeError as error:
            without_registry = not self._options.registry and starts_with_id(message)
            reason = message.reason or (REGISTERED if without_registry else str(error))
            return [self._unreadable(message, key, reason)]

    def decode_many(self, messages: Sequence[Message]) -> Iterator[Item | Block]:
        """Messages that match a template are decoded in batches, after the others; then tombstones."""
        matching: dict[MessageTemplate, list[Message]] = {}
        tombstones: list[Message] = []
        learned = Counter[str]()
        template = None
        for message in messages:
            if message.value is None and self._rows is None:
                tombstones.append(message)
                continue
            if template is None or not template.matches(message):
                template = self._templates.find(message)
            if template is None:
                yield from self._decode_alone(message, learned)
            else:
                matching.setdefault(template, []).append(message)
        keys: set[bytes | None] = set()
        for template, batch in matching.items():
            blocks, others = self._templates.read(template, batch)
            if blocks:
                yield from self._layouts.announce(template.layout, blocks[0].first_order_key)
                yield from blocks
            for message in others:
                yield from self._decode_alone(message, learned)
            keys |= {message.key for message in batch} - {message.key for message in others}
        remaining = [message for message in tombstones if message.key not in keys]
        if len(remaining) < len(tombstones):  # their keys have been decoded already
            yield Ignored(len(tombstones) - len(remaining))
        for message in remaining:
            yield from self.decode(message)

    def decode_columns(self, columns: MessageColumns) -> Iterator[Item | Block]:
        """A template is learned from the first message. Without one, all messages are decoded as JSON."""
        if columns.tombstones:
            yield Ignored(columns.tombstones)
        template = self._templates.find_for_columns(columns)
        if template is None:
            yield from self.decode_many(columns.take([0]).json_messages())
            columns = columns.take(range(1, len(columns.messages)))
            template = self._templates.find_for_columns(columns)
        if template is not None:
            blocks, columns = self._templates.read_columns(template, columns)
            if blocks:
                yield from self._layouts.announce(template.layout, blocks[0].first_order_key)
                yield from blocks
        yield from self.decode_many(columns.json_messages())

    def _decode_alone(self, message: Message, learned: Counter[str]) -> list[Item]:
        """``learned``: topic → number of messages of this batch that templates have been learned from."""
        items = self.decode(message)
        if self._rows is None and learned[message.topic] < LEARNED_PER_BATCH:
            learned[message.topic] += 1
            self._templates.learn(message)
        return items

    def _unreadable(self, message: Message, key: ConnectValue, reason: str) -> ChangeRecord:
        """``key``: as far as it is known."""
        table = self._table_of(message.topic)
        table = table if self._settings.includes(table) else ""
        members = key.payload if isinstance(key.payload, dict) else {}
        key_columns = {name: value for name, value in members.items() if isinstance(value, int | str)}
        known = PartialDecode(table, known=key_columns, width=self._width(table))
        return undecoded_record(CODEC, self._settings.epoch, message, reason, known)

    def _decode(self, message: Message, value: ConnectValue, key: ConnectValue) -> list[Item]:
        payload = as_row(value.payload, "the value")
        op = payload.get("op")
        if op is None:
            return control_messages.decode(message, payload, self._settings, self._options)
        connector, source = source_of(payload)
        if op == "m":
            if payload.get("before") is not None or payload.get("after") is not None:
                raise DecodeError(CONTRADICTION, "a logical message with a before or after image")
            block = source_block(op, payload.get("transaction"), position_of(payload, value.raw), connector, source, "")
            return [control_messages.logical_message(message, payload, block, self._settings)]
        table = self._settings.copied_name(table_of(connector, source))
        if not self._settings.includes(table):
            return [Ignored(1, table)]
        try:
            position = position_of(payload, value.raw)
            block = source_block(op, payload.get("transaction"), position, connector, source, table)
            return self._changes.decode(message, op, value, key, block)
        except DecodeError as error:
            known = PartialDecode(table, width=POSITIONS[connector][1])
            return [undecoded_record(CODEC, self._settings.epoch, message, str(error), known)]

    def _table_of(self, topic: str) -> str:
        """The table in the name of a topic, for unwrapped rows and messages that cannot be decoded."""
        prefix = self._options.topic_prefix
        if not prefix:
            return self._settings.table_of_topic(topic.partition(".")[2])
        return self._settings.table_of_topic(topic.removeprefix(f"{prefix}.")) if topic.startswith(f"{prefix}.") else ""

    def _width(self, table: str) -> int:
        """The number of digits for an order key that sorts last: the maximum, since the connector is unknown."""
        return max(width for _, width in POSITIONS.values()) if table else 16
