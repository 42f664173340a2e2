"""Messages of a YDB changefeed → change records: selects the decoder of one of the three formats. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.decoders.common import exact_json
from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    WRONG_VALUE,
    DecodeError,
    PartialDecode,
    undecoded_record,
)
from airflow_cdc_provider.connectors.decoders.common.images import as_row
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Item, Message
from airflow_cdc_provider.connectors.decoders.ydb.debezium_json import DebeziumJson
from airflow_cdc_provider.connectors.decoders.ydb.dynamodb_json import DynamoDbJson
from airflow_cdc_provider.connectors.decoders.ydb.json_changes import YdbJson
from airflow_cdc_provider.connectors.decoders.ydb.message_templates import TopicTemplates, may_have_whole_row
from airflow_cdc_provider.connectors.decoders.ydb.options import YdbOptions
from airflow_cdc_provider.connectors.decoders.ydb.positions import DIGITS
from airflow_cdc_provider.connectors.decoders.ydb.records import CODEC
from airflow_cdc_provider.connectors.decoders.ydb.tables import FeedTables
from airflow_cdc_provider.connectors.source import Ignored
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.table.reported_changes import Report, ReportedChanges
from airflow_cdc_provider.core.table.source_names import table_name


class YdbDecoder:
    reads_avro = False
    one_table_per_topic = True
    codec = CODEC
    whole_rows_remedy = (
        "if the MODE of the feed is UPDATES, set `mode: UPDATES` under `source`; otherwise create another feed, name "
        "its topic in the YAML and resync: ALTER TABLE `{table}` ADD CHANGEFEED whole WITH (FORMAT = 'JSON', "
        "MODE = 'NEW_AND_OLD_IMAGES', VIRTUAL_TIMESTAMPS = TRUE, INITIAL_SCAN = TRUE);"
    )
    reported_changes: ClassVar[ReportedChanges] = ReportedChanges(
        add_column=Report.BAD_RECORD,
        filled_column=Report.BAD_RECORD,
        rename_column=Report.BAD_RECORD,
        narrow=Report.BAD_RECORD,
    )

    def __init__(self, settings: DecoderSettings) -> None:
        options = from_plain(YdbOptions, settings.options)
        tables = self._tables = FeedTables(settings)
        self._settings = settings
        self._table = options.table
        self._json = YdbJson(settings, options, tables)
        self._templates = TopicTemplates(settings, options.mode, tables)
        self._debezium = DebeziumJson(settings, tables)
        self._dynamo = DynamoDbJson(settings, tables)

    def decode_many(self, messages: Sequence[Message]) -> Iterator[Item | Block]:
        """Changes with whole rows are decoded in batches per topic, after the other messages."""
        by_topic: dict[str, list[Message]] = {}
        for message in messages:
            if may_have_whole_row(message) and self._settings.includes(self._table_of(message.topic)):
                by_topic.setdefault(message.topic, []).append(message)
            else:
                yield from self.decode(message)
        for topic, batch in by_topic.items():
            table = self._table_of(topic)
            blocks, others = self._templates.read(topic, table, batch)
            if blocks:
                yield from self._tables.announce(self._tables.images(table).schema)
                yield from blocks
            for message in others:
                yield from self.decode(message)

    def decode(self, message: Message) -> list[Item]:
        table = self._table_of(message.topic)
        if not self._settings.includes(table):
            return [Ignored(1, table)]
        try:
            if message.value is None:
                raise DecodeError(WRONG_VALUE, "a message without a value")
            value = as_row(exact_json.parse(message.value), "the message")
            if "payload" in value:
                return self._debezium.decode(message, value, table)
            if "dynamodb" in value:
                return self._dynamo.decode(message, value, table)
            return self._json.decode(message, value, table)
        except DecodeError as error:
            return [
                undecoded_record(CODEC, self._settings.epoch, message, str(error), PartialDecode(table, width=DIGITS))
            ]

    def _table_of(self, topic: str) -> str:
        """The path of a feed's topic is the path of its table and the name of the feed."""
        if self._table:
            return self._table
        return table_name(topic.strip("/").rpartition("/")[0])
