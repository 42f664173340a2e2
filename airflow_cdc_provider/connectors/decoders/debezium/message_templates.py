"""Which messages are read together: those that look like one that was read before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.decoders.common.exact_json import MOST_BYTES
from airflow_cdc_provider.connectors.decoders.common.message import FEW, DecoderSettings, Message
from airflow_cdc_provider.connectors.decoders.debezium.connect_json import BLANKS, ConnectReader, ConnectValue, key_of
from airflow_cdc_provider.connectors.decoders.debezium.envelope import NAMES, PARTS, ROWS, source_of, table_of
from airflow_cdc_provider.connectors.decoders.debezium.placeholders import Placeholders
from airflow_cdc_provider.connectors.decoders.debezium.table_layouts import TableLayout, TableLayouts

if TYPE_CHECKING:
    from airflow_cdc_provider.connectors.decoders.debezium.template_events import TemplateEvents

MOST_LOOKS, MOST_LEARNT = 8, 64
"""Of one topic, the newest first; and how often one is learnt."""
CLOSING = b"}"


class Frame(NamedTuple):
    """What stands before and behind the payload, in message after message."""

    begin: bytes
    end: bytes

    def payload(self, data: bytes) -> bytes:
        return data[len(self.begin) : len(data) - len(self.end)]


@dataclass(frozen=True, eq=False)
class MessageTemplate:
    """``mark``: where nothing stands before the payload, the table's name as it stands in the source block."""

    topic: str
    value: Frame
    key: Frame
    mark: bytes
    layout: TableLayout
    events: TemplateEvents

    def takes(self, message: Message) -> bool:
        value, key = message.value, message.key
        return (
            value is not None
            and key is not None
            and message.topic == self.topic
            and value.startswith(self.value.begin)
            and key.startswith(self.key.begin)
            and value.endswith(self.value.end)
            and key.endswith(self.key.end)
            and len(value) <= MOST_BYTES
            and self.mark in value
        )


class MessageTemplates:
    """Learnt from messages that were read one by one."""

    def __init__(
        self, setting: DecoderSettings, reader: ConnectReader, layouts: TableLayouts, placeholders: Placeholders
    ) -> None:
        self._setting = setting
        self._reader = reader
        self._layouts = layouts
        self._placeholders = placeholders
        self._known: dict[str, list[MessageTemplate]] = {}
        self._learnt: Counter[str] = Counter()

    def of(self, message: Message) -> MessageTemplate | None:
        for look in self._known.get(message.topic, ()):
            if look.takes(message):
                return look
        return None

    def read(self, look: MessageTemplate, messages: Sequence[Message]) -> tuple[list[Block], list[Message]]:
        """The plain ones among them, and the others."""
        from airflow_cdc_provider.connectors.decoders.debezium.template_events import Text

        texts = [Text(one, look.value.payload(one.value or b""), look.key.payload(one.key or b"")) for one in messages]
        found, others = look.events.read(texts)
        if len(messages) > FEW and len(others) > len(messages) // 2:
            self._known[look.topic] = [one for one in self._known[look.topic] if one is not look]
        return [Block(look.layout.table, columns) for columns in found], [one.message for one in others]

    def learn(self, message: Message) -> None:
        """So that messages like this one are read together from now on."""
        if self._learnt[message.topic] >= MOST_LEARNT:
            return
        self._learnt[message.topic] += 1
        try:
            look = self._look(message)
        except DecodeError:
            return
        if look is not None:
            others = [one for one in self._known.get(message.topic, ()) if one.layout is not look.layout]
            self._known[message.topic] = [look, *others][:MOST_LOOKS]

    def _look(self, message: Message) -> MessageTemplate | None:
        """None where such messages have to be read one by one."""
        from airflow_cdc_provider.connectors.decoders.debezium.shapes import shape_of
        from airflow_cdc_provider.connectors.decoders.debezium.template_events import TemplateEvents

        if message.value is None or message.key is None:
            return None
        value = self._reader.read(message.value, message.topic)
        key = self._reader.read(message.key, key_of(message.topic))
        around_value, around_key = _frame(message.value, value), _frame(message.key, key)
        envelope, names = value.payload, key.payload
        if around_value is None or around_key is None or not isinstance(envelope, dict) or not isinstance(names, dict):
            return None
        row: dict[str, Any] = next((envelope[part] for part in ROWS if isinstance(envelope.get(part), dict)), {})
        connector, source = source_of(envelope)
        table = table_of(connector, source)
        if connector == "mongodb" or not set(PARTS) <= envelope.keys() or not self._setting.wants(table):
            return None
        layout = self._layouts.of(table, connector, value, tuple(names))
        if (
            layout.other_key
            or not layout.images.as_told
            or layout.unsure
            or not layout.schema.key
            or not {*layout.schema.names, *names} <= row.keys()
        ):
            return None
        shape = shape_of(envelope, names, layout)
        if shape is None:
            return None
        named = {name: source[name] for name in NAMES[connector]}
        events = TemplateEvents(layout, connector, named, self._placeholders, self._setting.epoch, shape)
        mark = b"" if around_value.begin else encode_basestring(str(source[NAMES[connector][-1]])).encode()
        return MessageTemplate(message.topic, around_value, around_key, mark, layout, events)


def _frame(data: bytes, told: ConnectValue) -> Frame | None:
    """None where something stands behind the payload."""
    if told.schema is None:
        return Frame(b"", b"") if told.raw else None
    end = told.raw.lstrip(BLANKS).encode() + CLOSING
    return Frame(data[: -len(end)], CLOSING) if data.endswith(end) else None
