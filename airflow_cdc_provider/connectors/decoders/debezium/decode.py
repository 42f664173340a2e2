"""Debezium's messages → change records: what kind of message it is, and who reads it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    CONTRADICTION,
    DecodeError,
    Understood,
    undecoded_message,
)
from airflow_cdc_provider.connectors.decoders.common.images import as_row
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Item, Message
from airflow_cdc_provider.connectors.decoders.debezium import control_messages
from airflow_cdc_provider.connectors.decoders.debezium.changes import CODEC, Changes
from airflow_cdc_provider.connectors.decoders.debezium.connect_json import ConnectReader, ConnectValue, key_of
from airflow_cdc_provider.connectors.decoders.debezium.envelope import block_of, position_of, source_of, table_of
from airflow_cdc_provider.connectors.decoders.debezium.message_templates import MessageTemplate, MessageTemplates
from airflow_cdc_provider.connectors.decoders.debezium.options import read_options
from airflow_cdc_provider.connectors.decoders.debezium.placeholders import Placeholders
from airflow_cdc_provider.connectors.decoders.debezium.positions import PLACES
from airflow_cdc_provider.connectors.decoders.debezium.snapshots import Snapshots
from airflow_cdc_provider.connectors.decoders.debezium.table_layouts import TableLayouts
from airflow_cdc_provider.connectors.decoders.debezium.unwrapped import UnwrappedRows
from airflow_cdc_provider.connectors.source import Ignored

LEARNT_AT_ONCE = 2
"""Of a topic, among messages that are decoded together."""


class DebeziumDecoder:
    codec = CODEC
    reads_avro = False
    whole_rows = (
        "let the connector send whole documents of {table} (capture.mode = change_streams_update_full), into a new "
        "topic, name it in the YAML, and `airflow cdc resync`"
    )

    def __init__(self, setting: DecoderSettings) -> None:
        options = read_options(setting.options)
        self._setting = setting
        self._options = options
        self._reader = ConnectReader()
        layouts, placeholders = TableLayouts(setting, options.full_before), Placeholders(options.unavailable_value)
        self._layouts = layouts
        self._changes = Changes(setting, layouts, placeholders)
        self._looks = MessageTemplates(setting, self._reader, layouts, placeholders)
        self._rows = UnwrappedRows(setting, layouts, placeholders) if options.unwrapped else None

    def snapshot_watch(self) -> Snapshots:
        return Snapshots(self._options.blocking_snapshots)

    def decode(self, message: Message) -> list[Item]:
        key = ConnectValue(None)
        try:
            if message.key is not None:
                key = self._reader.read(message.key, key_of(message.topic))
            if message.value is not None:
                value = self._reader.read(message.value, message.topic)
            elif self._rows is None:
                return [Ignored(1)]  # a tombstone: it lets a compacted topic forget the key, whose delete came before
            else:
                value = ConnectValue(None)
            if self._rows is not None:
                return self._rows.decode(message, value, key, self._table_of(message.topic))
            return self._decode(message, value, key)
        except DecodeError as error:
            table = self._table_of(message.topic)
            table = table if self._setting.wants(table) else ""
            told = key.payload if isinstance(key.payload, dict) else {}
            names = {name: one for name, one in told.items() if isinstance(one, int | str)}
            known = Understood(table, known=names, width=self._width(table))
            return [undecoded_message(CODEC, self._setting.epoch, message, str(error), known)]

    def decode_many(self, messages: Sequence[Message]) -> Iterator[Item | Block]:
        """Those of a table that look alike together, behind the others; then the tombstones."""
        alike: dict[MessageTemplate, list[Message]] = {}
        tombstones: list[Message] = []
        learnt = Counter[str]()
        look = None
        for message in messages:
            if message.value is None and self._rows is None:
                tombstones.append(message)
                continue
            if look is None or not look.takes(message):
                look = self._looks.of(message)
            if look is None:
                yield from self._decode_alone(message, learnt)
            else:
                alike.setdefault(look, []).append(message)
        keys: set[bytes | None] = set()
        for look, some in alike.items():
            found, others = self._looks.read(look, some)
            if found:
                yield from self._layouts.announced(look.layout, found[0].first_order_key)
                yield from found
            for message in others:
                yield from self._decode_alone(message, learnt)
            keys |= {one.key for one in some} - {one.key for one in others}
        unmet = [one for one in tombstones if one.key not in keys]
        if len(unmet) < len(tombstones):  # where the key of its delete could be read, its own can be
            yield Ignored(len(tombstones) - len(unmet))
        for message in unmet:
            yield from self.decode(message)

    def _decode_alone(self, message: Message, learnt: Counter[str]) -> list[Item]:
        """``learnt``: how many messages of each topic have shown by now what others may look like."""
        found = self.decode(message)
        if self._rows is None and learnt[message.topic] < LEARNT_AT_ONCE:
            learnt[message.topic] += 1
            self._looks.learn(message)
        return found

    def _decode(self, message: Message, value: ConnectValue, key: ConnectValue) -> list[Item]:
        payload = as_row(value.payload, "the value")
        op = payload.get("op")
        if op is None:
            return control_messages.decode(message, payload, self._setting, self._options)
        connector, source = source_of(payload)
        if op == "m":
            if payload.get("before") is not None or payload.get("after") is not None:
                raise DecodeError(CONTRADICTION, "a logical message with a row")
            block = block_of(op, payload.get("transaction"), position_of(payload, value.raw), connector, source, "")
            return [control_messages.logical_message(message, payload, block, self._setting)]
        table = table_of(connector, source)
        if not self._setting.wants(table):
            return [Ignored(1, table)]
        try:
            position = position_of(payload, value.raw)
            block = block_of(op, payload.get("transaction"), position, connector, source, table)
            return self._changes.of(message, op, value, key, block)
        except DecodeError as error:
            known = Understood(table, width=PLACES[connector][1])
            return [undecoded_message(CODEC, self._setting.epoch, message, str(error), known)]

    def _table_of(self, topic: str) -> str:
        """What the name of a topic tells of the table; good for unwrapped rows, and for messages nobody can read."""
        prefix = self._options.topic_prefix
        if prefix:
            return topic.removeprefix(f"{prefix}.") if topic.startswith(f"{prefix}.") else ""
        return topic.partition(".")[2]

    def _width(self, table: str) -> int:
        """Digits of an order key that is behind all others: those of the widest, where the connector is not known."""
        return max(width for _, width in PLACES.values()) if table else 16
