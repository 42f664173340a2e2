"""Decodes the messages of a feed to the records of the copied tables. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Protocol

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
    DecodesColumns,
    DecodesMany,
    Item,
    MarksSnapshots,
    Message,
    MessageColumns,
    NamesServers,
    ServerWatch,
    SnapshotWatch,
    no_statements,
)
from airflow_cdc_provider.connectors.source import Ignored, OrderFound, Resolved, SnapshotFound, StreamItem
from airflow_cdc_provider.connectors.transports.messages.filtering import RowFilter, row_filters
from airflow_cdc_provider.connectors.transports.messages.returning_columns import ReturningColumns
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.positions import EPOCH_DIGITS
from airflow_cdc_provider.core.registry import load_class
from airflow_cdc_provider.core.table.schema import TableSchema

Watch = SnapshotWatch | ServerWatch

BATCH_MESSAGES = 8192
"""How many messages are decoded at a time."""


class Converter(Protocol):
    """Converts messages as they arrive to messages as decoders expect them."""

    def messages(self, messages: Iterable[Message]) -> Iterable[Message]:
        """In the same order."""

    def columns(self, messages: Iterable[Message]) -> tuple[list[MessageColumns], list[Message]]:
        """The messages that can be read as columns, and the others as they are."""


class Unconverted:
    def messages(self, messages: Iterable[Message]) -> Iterable[Message]:
        return messages

    def columns(self, messages: Iterable[Message]) -> tuple[list[MessageColumns], list[Message]]:
        return [], list(messages)


UNCONVERTED = Unconverted()


@dataclass(frozen=True)
class Format:
    """A message format with its options."""

    name: str
    options: Mapping[str, Any]
    converter: Converter = UNCONVERTED

    @property
    def reads_avro(self) -> bool:
        return self.decoder().reads_avro

    def decoder(
        self,
        epoch: int = 1,
        tables: Mapping[str, CopiedTable] | None = None,
        statements: Callable[[], Iterable[Message]] = no_statements,
        names: Mapping[str, str] | None = None,
    ) -> Decoder:
        """``statements``: reads the messages of schema-change topics, if the decoder needs them. ``names``: see
        ``DecoderSettings``."""
        settings = DecoderSettings(
            epoch,
            tables,
            self.options,
            statements=lambda: self.converter.messages(statements()),
            names=names or {},
        )
        decoder: Decoder = load_class("format", self.name, FORMATS)(settings)
        return decoder

    def reread(self, record: ChangeRecord, task: TableTask, schema: TableSchema) -> list[ChangeRecord]:
        """See ``SourceConnector.reread``. Omits records of other tables, which have them themselves."""
        epoch = int(record.order_key[:EPOCH_DIGITS], 16)
        reader = message_reader(self, [replace(task, schema=schema, control=None)], epoch)
        message = message_of(record)
        if message is None:
            return [record]
        (message,) = self.converter.messages([message])
        records = reread(record, message, reader.decoder)
        if records == [record]:
            return records
        return [reader.apply_filter(decoded, message) for decoded in records if decoded.table == record.table]


@dataclass(frozen=True)
class MessageReader:
    """Reads the changes of ``tables`` from the messages of a feed."""

    decoder: Decoder
    tables: Collection[str]
    filters: Mapping[str, RowFilter]
    epoch: int
    converter: Converter = UNCONVERTED

    def items(self, messages: Iterable[Message]) -> Iterator[StreamItem]:
        """Records of other tables are counted. A message whose table cannot be determined yields an ``unreadable``
        record for every table, because it may belong to any of them.

        A barrier becomes a ``Resolved`` item of its channel instead of a record: other channels may be at an earlier
        time."""
        snapshots = self.decoder.snapshot_watch() if isinstance(self.decoder, MarksSnapshots) else None
        servers = self.decoder.server_watch() if isinstance(self.decoder, NamesServers) else None
        returning = ReturningColumns()
        for item in self._items(messages, [watch for watch in (snapshots, servers) if watch is not None]):
            returning.add(item)
            yield item
        yield from returning.holes()
        yield from (SnapshotFound(snapshot) for snapshot in (snapshots.snapshots if snapshots is not None else ()))
        yield from (OrderFound(order) for order in (servers.orders if servers is not None else ()))

    def _items(self, messages: Iterable[Message], watches: Sequence[Watch]) -> Iterator[StreamItem]:
        if isinstance(self.decoder, DecodesMany) and not self.filters:
            remaining = iter(messages)
            while batch := list(islice(remaining, BATCH_MESSAGES)):
                for item in self._decoded(self.decoder, batch, watches):
                    yield from self._ours(item)
            return
        for message in self._converted(messages, watches):
            for item in self.decoder.decode(message):
                for ours in self._ours(item):
                    yield self.apply_filter(ours, message) if isinstance(ours, ChangeRecord) else ours

    def _decoded(
        self, decoder: DecodesMany, messages: Sequence[Message], watches: Sequence[Watch]
    ) -> Iterator[Item | Block]:
        if isinstance(decoder, DecodesColumns) and decoder.reads_columns:
            with_columns, messages = self.converter.columns(messages)
            for columns in with_columns:
                for watch in watches:
                    watch.observe_columns(columns)
                yield from decoder.decode_columns(columns)
        yield from decoder.decode_many(list(self._converted(messages, watches)))

    def _converted(self, messages: Iterable[Message], watches: Sequence[Watch]) -> Iterator[Message]:
        for message in self.converter.messages(messages):
            for watch in watches:
                watch.observe(message)
            yield message

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

    def apply_filter(self, record: ChangeRecord, message: Message) -> ChangeRecord:
        """The record after the table's row filter; an ``unreadable`` one if the filter cannot be evaluated."""
        filtered = self.filters[record.table].apply(record) if record.table in self.filters else record
        if isinstance(filtered, ChangeRecord):
            return filtered
        reason = f"{WRONG_VALUE} `where` requires the column {filtered.column}, which the message lacks"
        known = PartialDecode(record.table, tail=record.order_key[EPOCH_DIGITS:], schema_id=record.schema_id)
        return undecoded_record(self.decoder.codec, self.epoch, message, reason, replace(known, key=record.key))


def message_reader(
    message_format: Format,
    tasks: Sequence[TableTask],
    epoch: int,
    statements: Callable[[], Iterable[Message]] = no_statements,
) -> MessageReader:
    """``statements``: see ``Format.decoder``."""
    copied = {task.table: _copied_table(task) for task in tasks}
    decoder = message_format.decoder(epoch, copied, statements, _copied_names(tasks))
    tables = frozenset(task.table for task in tasks)
    return MessageReader(decoder, tables, row_filters(tasks), epoch, message_format.converter)


def _copied_names(tasks: Sequence[TableTask]) -> dict[str, str]:
    """See ``DecoderSettings.names``."""
    names = {name: task.table for task in tasks for name in (task.name_in_source, *task.former_names)}
    others = {task.table: "" for task in tasks if task.table not in names}  # another table has got the name
    return others | {name: table for name, table in names.items() if name != table}


def _copied_table(task: TableTask) -> CopiedTable:
    if task.control is None:
        return CopiedTable(task.rule, task.schema)
    furthest, *_ = task.views
    return CopiedTable(task.rule, task.schema, furthest.schema, tuple(task.control.ignored))
