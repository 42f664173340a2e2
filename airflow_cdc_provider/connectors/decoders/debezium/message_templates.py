"""Selects messages that are decoded in batches: those with the shape of a message decoded before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.decoders.common.exact_json import MAX_BYTES
from airflow_cdc_provider.connectors.decoders.common.message import (
    SMALL_BATCH,
    DecoderSettings,
    Message,
    MessageColumns,
)
from airflow_cdc_provider.connectors.decoders.debezium.connect_json import BLANKS, ConnectReader, ConnectValue, key_of
from airflow_cdc_provider.connectors.decoders.debezium.placeholders import Placeholders
from airflow_cdc_provider.connectors.decoders.debezium.source_block import NAMES, PARTS, ROWS, source_of, table_of
from airflow_cdc_provider.connectors.decoders.debezium.table_layouts import TableLayout, TableLayouts

if TYPE_CHECKING:
    from airflow_cdc_provider.connectors.decoders.debezium.template_events import TemplateEvents

MAX_TEMPLATES, MAX_LEARNED = 8, 64
"""Per topic: how many templates are kept, newest first, and how many are learned."""
CLOSING = b"}"


class Frame(NamedTuple):
    """The bytes before and after the payload, and the schema beside it, the same in many messages."""

    start: bytes
    end: bytes
    schema: str = ""

    def payloads(self, texts: Sequence[bytes]) -> Sequence[bytes]:
        if not self.start and not self.end:
            return texts
        return [text[len(self.start) : len(text) - len(self.end)] for text in texts]


@dataclass(frozen=True, eq=False)
class MessageTemplate:
    """``mark``: the JSON text of the table name in the source block if nothing precedes the payload, else empty."""

    topic: str
    value: Frame
    key: Frame
    mark: bytes
    layout: TableLayout
    events: TemplateEvents

    def matches(self, message: Message) -> bool:
        value, key = message.value, message.key
        return (
            value is not None
            and key is not None
            and message.topic == self.topic
            and message.value_schema == self.value.schema
            and message.key_schema == self.key.schema
            and value.startswith(self.value.start)
            and key.startswith(self.key.start)
            and value.endswith(self.value.end)
            and key.endswith(self.key.end)
            and len(value) <= MAX_BYTES
            and self.mark in value
        )

    def matches_columns(self, columns: MessageColumns) -> bool:
        schemas = columns.value_schema, columns.key_schema
        return columns.topic == self.topic and schemas == (self.value.schema, self.key.schema)


class MessageTemplates:
    """Learned from messages that were decoded one by one."""

    def __init__(
        self, settings: DecoderSettings, reader: ConnectReader, layouts: TableLayouts, placeholders: Placeholders
    ) -> None:
        self._settings = settings
        self._reader = reader
        self._layouts = layouts
        self._placeholders = placeholders
        self._known: dict[str, list[MessageTemplate]] = {}
        self._learned: Counter[str] = Counter()

    def find(self, message: Message) -> MessageTemplate | None:
        for template in self._known.get(message.topic, ()):
            if template.matches(message):
                return template
        return None

    def find_for_columns(self, columns: MessageColumns) -> MessageTemplate | None:
        for template in self._known.get(columns.topic, ()):
            if template.matches_columns(columns):
                return template
        return None

    def read(self, template: MessageTemplate, messages: Sequence[Message]) -> tuple[list[Block], list[Message]]:
        """The blocks, and the messages to be decoded one by one."""
        from airflow_cdc_provider.connectors.decoders.debezium.template_events import MessageText

        values = template.value.payloads([message.value or b"" for message in messages])
        keys = template.key.payloads([message.key or b"" for message in messages])
        texts = [*map(MessageText._make, zip(messages, values, keys, strict=True))]
        batches, others = template.events.read(texts)
        self._drop_if_useless(template, len(messages), len(others))
        return [Block(template.layout.table, columns) for columns in batches], [text.message for text in others]

    def read_columns(self, template: MessageTemplate, columns: MessageColumns) -> tuple[list[Block], MessageColumns]:
        """The blocks, and the messages to be decoded as JSON."""
        batches, others = template.events.read_columns(columns)
        self._drop_if_useless(template, len(columns.messages), len(others))
        return [Block(template.layout.table, batch) for batch in batches], columns.take(others)

    def _drop_if_useless(self, template: MessageTemplate, messages: int, others: int) -> None:
        if messages > SMALL_BATCH and others > messages // 2:
            self._known[template.topic] = [known for known in self._known[template.topic] if known is not template]

    def learn(self, message: Message) -> None:
        """Messages of the shape of ``message`` are decoded in batches from now on, if the shape is supported."""
        if self._learned[message.topic] >= MAX_LEARNED:
            return
        self._learned[message.topic] += 1
        try:
            template = self._template(message)
        except DecodeError:
            return
        if template is not None:
            others = [known for known in self._known.get(message.topic, ()) if known.layout is not template.layout]
            self._known[message.topic] = [template, *others][:MAX_TEMPLATES]

    def _template(self, message: Message) -> MessageTemplate | None:
        """None if such messages must be decoded one by one."""
        from airflow_cdc_provider.connectors.decoders.debezium.shapes import shape_of
        from airflow_cdc_provider.connectors.decoders.debezium.template_events import TemplateEvents

        if message.value is None or message.key is None:
            return None
        value = self._reader.read(message.value, message.topic, message.value_schema)
        key = self._reader.read(message.key, key_of(message.topic), message.key_schema)
        value_frame = _frame(message.value, value, message.value_schema)
        key_frame = _frame(message.key, key, message.key_schema)
        envelope, names = value.payload, key.payload
        if value_frame is None or key_frame is None or not isinstance(envelope, dict) or not isinstance(names, dict):
            return None
        row: dict[str, Any] = next((envelope[part] for part in ROWS if isinstance(envelope.get(part), dict)), {})
        connector, source = source_of(envelope)
        table = self._settings.copied_name(table_of(connector, source))
        if connector == "mongodb" or not set(PARTS) <= envelope.keys() or not self._settings.includes(table):
            return None
        layout = self._layouts.get(table, connector, value, tuple(names))
        if (
            layout.key_differs
            or not layout.images.as_in_source
            or layout.ambiguous_nulls
            or not layout.schema.key
            or not {*layout.schema.names, *names} <= row.keys()
        ):
            return None
        shape = shape_of(envelope, names, layout)
        if shape is None:
            return None
        table_fields = {name: source[name] for name in NAMES[connector]}
        events = TemplateEvents(layout, connector, table_fields, self._placeholders, self._settings.epoch, shape)
        mark = b"" if value.schema is not None else encode_basestring(str(source[NAMES[connector][-1]])).encode()
        return MessageTemplate(message.topic, value_frame, key_frame, mark, layout, events)


def _frame(data: bytes, value: ConnectValue, schema: str) -> Frame | None:
    """None if the payload is not the last member."""
    if schema:
        return Frame(b"", b"", schema)
    if value.schema is None:
        return Frame(b"", b"") if value.raw else None
    end = value.raw.lstrip(BLANKS).encode() + CLOSING
    return Frame(data[: -len(end)], CLOSING) if data.endswith(end) else None
