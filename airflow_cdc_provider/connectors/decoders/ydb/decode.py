"""Records of a YDB changefeed → change records: which of the three forms, and who reads it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.decoders.common import exact_json
from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    WRONG_VALUE,
    DecodeError,
    Understood,
    undecoded_message,
)
from airflow_cdc_provider.connectors.decoders.common.images import as_row
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Item, Message
from airflow_cdc_provider.connectors.decoders.ydb.debezium_json import DebeziumForm
from airflow_cdc_provider.connectors.decoders.ydb.dynamodb_json import DynamoForm
from airflow_cdc_provider.connectors.decoders.ydb.json_changes import JsonForm
from airflow_cdc_provider.connectors.decoders.ydb.message_templates import TopicTemplates, may_be_plain
from airflow_cdc_provider.connectors.decoders.ydb.options import read_options
from airflow_cdc_provider.connectors.decoders.ydb.positions import DIGITS
from airflow_cdc_provider.connectors.decoders.ydb.records import CODEC
from airflow_cdc_provider.connectors.decoders.ydb.tables import FeedTables
from airflow_cdc_provider.connectors.source import Ignored


class YdbDecoder:
    reads_avro = False
    codec = CODEC
    whole_rows = (
        "where MODE is UPDATES, say `mode: UPDATES` under `source`; else make another feed, name its topic in the YAML "
        "and copy anew: ALTER TABLE `{table}` ADD CHANGEFEED whole WITH (FORMAT = 'JSON', MODE = 'NEW_AND_OLD_IMAGES', "
        "VIRTUAL_TIMESTAMPS = TRUE, INITIAL_SCAN = TRUE);"
    )

    def __init__(self, setting: DecoderSettings) -> None:
        options = read_options(setting.options)
        tables = self._tables = FeedTables(setting)
        self._setting = setting
        self._table = options.table
        self._json = JsonForm(setting, options, tables)
        self._plain = TopicTemplates(setting, options.mode, tables)
        self._debezium = DebeziumForm(setting, tables)
        self._dynamo = DynamoForm(setting)

    def decode_many(self, messages: Sequence[Message]) -> Iterator[Item | Block]:
        """Changes of a topic that tell whole rows together, behind the others."""
        plain: dict[str, list[Message]] = {}
        for message in messages:
            if may_be_plain(message) and self._setting.wants(self._table_of(message.topic)):
                plain.setdefault(message.topic, []).append(message)
            else:
                yield from self.decode(message)
        for topic, some in plain.items():
            table = self._table_of(topic)
            found, others = self._plain.read(topic, table, some)
            if found:
                yield from self._tables.announced(self._tables.images(table).schema)
                yield from found
            for message in others:
                yield from self.decode(message)

    def decode(self, message: Message) -> list[Item]:
        table = self._table_of(message.topic)
        if not self._setting.wants(table):
            return [Ignored(1, table)]
        try:
            if message.value is None:
                raise DecodeError(WRONG_VALUE, "a record without a value")
            value = as_row(exact_json.parse(message.value), "the record")
            if "payload" in value:
                return self._debezium.decode(message, value, table)
            if "dynamodb" in value:
                return self._dynamo.decode(message, value, table)
            return self._json.decode(message, value, table)
        except DecodeError as error:
            return [undecoded_message(CODEC, self._setting.epoch, message, str(error), Understood(table, width=DIGITS))]

    def _table_of(self, topic: str) -> str:
        """The topic of a feed stands below its table."""
        if self._table:
            return self._table
        return topic.strip("/").rpartition("/")[0]
