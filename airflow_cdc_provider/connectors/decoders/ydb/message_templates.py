"""Which records are read together: those of a topic that look like one of them that was read before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.decoders.common import exact_json
from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.decoders.common.exact_json import MOST_BYTES
from airflow_cdc_provider.connectors.decoders.common.message import FEW, DecoderSettings, Message
from airflow_cdc_provider.connectors.decoders.ydb.options import FeedMode
from airflow_cdc_provider.connectors.decoders.ydb.tables import FeedTables

if TYPE_CHECKING:
    from airflow_cdc_provider.connectors.decoders.ydb.template_changes import TemplateChanges

IMAGES = (b'"newImage"', b'"oldImage"')
WHOLE = (*IMAGES, b'"erase"')
MOST_LEARNT = 64
"""How often the look of a topic's records is learnt."""


def may_be_plain(message: Message) -> bool:
    value = message.value
    return value is not None and len(value) <= MOST_BYTES and any(one in value for one in WHOLE)


class TopicTemplates:
    def __init__(self, setting: DecoderSettings, mode: FeedMode, tables: FeedTables) -> None:
        self._setting = setting
        self._mode = mode
        self._tables = tables
        self._known: dict[str, TemplateChanges] = {}
        self._learnt: Counter[str] = Counter()

    def read(self, topic: str, table: str, messages: Sequence[Message]) -> tuple[list[Block], list[Message]]:
        """The plain ones among them, and the others."""
        changes = self._known.get(topic) or self._learn(topic, table, messages)
        if changes is None:
            return [], list(messages)
        found, others = changes.read(messages)
        if len(messages) > FEW and len(others) > len(messages) // 2:
            del self._known[topic]
            self._learn(topic, table, others)
        return [Block(table, columns) for columns in found], others

    def _learn(self, topic: str, table: str, messages: Sequence[Message]) -> TemplateChanges | None:
        """From the first record that tells a row."""
        from airflow_cdc_provider.connectors.decoders.ydb.template_changes import TemplateChanges, schema_of

        values = (one.value for one in messages if one.value is not None and any(name in one.value for name in IMAGES))
        value = next(values, None)
        if value is None or self._learnt[topic] >= MOST_LEARNT:
            return None
        self._learnt[topic] += 1
        try:
            told, images = exact_json.parse(value), self._tables.images(table)
        except DecodeError:
            return None
        schema = schema_of(told, images) if isinstance(told, dict) else None
        if schema is None:
            return None
        made = self._known[topic] = TemplateChanges(table, images, self._mode, self._setting.epoch, schema)
        return made
