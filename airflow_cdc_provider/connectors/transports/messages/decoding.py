"""From the messages of a feed to the records of the tables that are copied. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from airflow_cdc_provider.connectors import FORMATS
from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    WRONG_VALUE,
    PartialDecode,
    message_of,
    reread,
    undecoded_record,
)
from airflow_cdc_provider.connectors.decoders.common.message import (
    CopiedTable,
    Decoder,
    DecoderSettings,
    DecodesMany,
    Item,
    MarksSnapshots,
    Message,
    SnapshotWatch,
)
from airflow_cdc_provider.connectors.source import Ignored, Resolved, SnapshotFound, StreamItem
from airflow_cdc_provider.connectors.transports.messages.filtering import Filter, filters_of
from airflow_cdc_provider.connectors.transports.messages.returning_columns import ReturningColumns
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.positions import EPOCH_DIGITS
from airflow_cdc_provider.core.registry import load_class
from airflow_cdc_provider.core.table.schema import TableSchema

TOGETHER = 8192
"""So many messages are decoded at a time."""


@dataclass(frozen=True)
class Format:
    """A format and the options it is read with."""

    name: str
    options: Mapping[str, Any]

    @property
    def reads_avro(self) -> bool:
        return self.decoder().reads_avro

    def decoder(self, epoch: int = 1, tables: Mapping[str, CopiedTable] | None = None) -> Decoder:
        made: Decoder = load_class("format", self.name, FORMATS)(DecoderSettings(epoch, tables, self.options))
        return made

    def reread(self, record: ChangeRecord, task: TableTask, schema: TableSchema) -> list[ChangeRecord]:
        """See ``SourceConnector.reread``. What turns out to be of another table is left out: that has it, too."""
        made = reading(self, [replace(task, schema=schema, control=None)], int(record.order_key[:EPOCH_DIGITS], 16))
        message = message_of(record)
        found = reread(record, made.decoder.codec, made.decoder)
        if message is None or found == [record]:
            return found
        return [made.taken(one, message) for one in found if one.table == record.table]


@dataclass(frozen=True)
class MessageReader:
    """What of the messages of a feed is about these tables."""

    decoder: Decoder
    tables: Collection[str]
    filters: Mapping[str, Filter]
    epoch: int

    def items(self, messages: Iterable[Message]) -> Iterator[StreamItem]:
        """What is about no single table is counted; a message of which nobody can tell the table is an ``unreadable``
        record of every table, for it may be of any: none steps over it.

        A barrier holds for its own channel only, and the others may be behind it: it is told as no record."""
        watch = self.decoder.snapshot_watch() if isinstance(self.decoder, MarksSnapshots) else None
        if watch is not None:
            messages = _shown(watch, messages)
        returning = ReturningColumns()
        for item in self._items(messages):
            returning.show(item)
            yield item
        yield from returning.found()
        yield from (SnapshotFound(one) for one in (watch.snapshots if watch is not None else ()))

    def _items(self, messages: Iterable[Message]) -> Iterator[StreamItem]:
        if isinstance(self.decoder, DecodesMany) and not self.filters:
            left = iter(messages)
            while some := list(islice(left, TOGETHER)):
                for item in self.decoder.decode_many(some):
                    yield from self._ours(item)
            return
        for message in messages:
            for item in self.decoder.decode(message):
                for one in self._ours(item):
                    yield self.taken(one, message) if isinstance(one, ChangeRecord) else one

    def _ours(self, item: Item | Block) -> Iterator[Item | Block | Resolved]:
        if not isinstance(item, ChangeRecord):
            yield item
        elif item.op == Operation.BARRIER:
            assert item.commit_ts is not None
            yield Resolved(json.loads(item.position)["channel"], item.commit_ts)
        elif item.table in self.tables:
            yield item
        elif item.op == Operation.UNREADABLE and not item.table:
            for table in sorted(self.tables):
                yield replace(item, table=table)
        else:
            yield Ignored(1)

    def taken(self, record: ChangeRecord, message: Message) -> ChangeRecord:
        """The record as the table's ``where`` has it."""
        told = self.filters[record.table].told(record) if record.table in self.filters else record
        if isinstance(told, ChangeRecord):
            return told
        reason = f"{WRONG_VALUE} `where` asks for the column {told.column}, which the message does not tell"
        known = PartialDecode(record.table, tail=record.order_key[EPOCH_DIGITS:], schema_id=record.schema_id)
        return undecoded_record(self.decoder.codec, self.epoch, message, reason, replace(known, key=record.key))


def _shown(watch: SnapshotWatch, messages: Iterable[Message]) -> Iterator[Message]:
    for message in messages:
        watch.observe(message)
        yield message


def reading(form: Format, tasks: Sequence[TableTask], epoch: int) -> MessageReader:
    wanted = {
        task.table: CopiedTable(task.rule, task.schema, task.control.schema if task.control else None) for task in tasks
    }
    return MessageReader(form.decoder(epoch, wanted), wanted.keys(), filters_of(tasks), epoch)
