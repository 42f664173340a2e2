"""Selects messages that are decoded in batches: those of a topic with the shape of a message decoded before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.decoders.common import exact_json
from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.decoders.common.exact_json import MAX_BYTES
from airflow_cdc_provider.connectors.decoders.common.message import SMALL_BATCH, DecoderSettings, Message
from airflow_cdc_provider.connectors.decoders.ydb.options import FeedMode
from airflow_cdc_provider.connectors.decoders.ydb.tables import FeedTables

if TYPE_CHECKING:
    from airflow_cdc_provider.connectors.decoders.ydb.template_changes import TemplateChanges

IMAGES = (b'"newImage"', b'"oldImage"')
WHOLE_ROWS = (*IMAGES, b'"erase"')
MAX_LEARNED = 64
"""How many templates are learned per topic."""


def may_have_whole_row(message: Message) -> bool:
    value = message.value
    return value is not None and len(value) <= MAX_BYTES and any(member in value for member in WHOLE_ROWS)


class TopicTemplates:
    def __init__(self, settings: DecoderSettings, mode: FeedMode, tables: FeedTables) -> None:
        self._settings = settings
        self._mode = mode
        self._tables = tables
        self._known: dict[str, TemplateChanges] = {}
        self._learned: Counter[str] = Counter()

    def read(self, topic: str, table: str, messages: Sequence[Message]) -> tuple[list[Block], list[Message]]:
        """The blocks, and the messages to be decoded one by one."""
        changes = self._known.get(topic) or self._learn(topic, table, messages)
        if changes is None:
            return [], list(messages)
        batches, others = changes.read(messages)
        if len(messages) > SMALL_BATCH and len(others) > len(messages) // 2:
            del self._known[topic]
            self._learn(topic, table, others)
        return [Block(table, columns) for columns in batches], others

    def _learn(self, topic: str, table: str, messages: Sequence[Message]) -> TemplateChanges | None:
        """From the first message with an image."""
        from airflow_cdc_provider.connectors.decoders.ydb.template_changes import TemplateChanges, schema_of

        values = (message.value for message in messages if message.value is not None)
        value = next((value for value in values if any(name in value for name in IMAGES)), None)
        if value is None or self._learned[topic] >= MAX_LEARNED:
            return None
        self._learned[topic] += 1
        try:
            members, images = exact_json.parse(value), self._tables.images(table)
        except DecodeError:
            return None
        schema = schema_of(members, images) if isinstance(members, dict) else None
        if schema is None:
            return None
        changes = TemplateChanges(table, images, self._mode, self._settings.epoch, schema)
        self._known[topic] = changes
        return changes
