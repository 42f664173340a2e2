"""From the messages of a feed to the records of the tables that are copied. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow_cdc_provider.connectors import FORMATS
from airflow_cdc_provider.connectors.formats.message import Decoder, Message, Setting, Wanted
from airflow_cdc_provider.connectors.formats.unreadable import reread
from airflow_cdc_provider.connectors.source import Ignored, StreamItem
from airflow_cdc_provider.core.changes import ChangeRecord, Operation
from airflow_cdc_provider.core.definition import TableRule
from airflow_cdc_provider.core.registry import class_of
from airflow_cdc_provider.core.steps import TableTask
from airflow_cdc_provider.core.tables import TableSchema


@dataclass(frozen=True)
class Format:
    """A format and the options it is read with."""

    name: str
    options: Mapping[str, Any]

    def decoder(self, epoch: int = 1, tables: Mapping[str, Wanted] | None = None) -> Decoder:
        made: Decoder = class_of("format", self.name, FORMATS)(Setting(epoch, tables, self.options))
        return made

    def decoder_of(self, tasks: Sequence[TableTask], epoch: int) -> Decoder:
        return self.decoder(epoch, {task.table: Wanted(task.rule, task.schema) for task in tasks})

    def reread(self, record: ChangeRecord, rule: TableRule, schema: TableSchema) -> list[ChangeRecord]:
        """See ``SourceConnector.reread``. What turns out to be of another table is left out: that has it, too."""
        epoch = int(record.order_key[:8], 16)
        decoder = self.decoder(epoch, {record.table: Wanted(rule, schema)})
        return [one for one in reread(record, decoder.codec, decoder) if one.table == record.table]


def items_of(decoder: Decoder, messages: Iterable[Message], tables: Collection[str]) -> Iterator[StreamItem]:
    """What the messages say of ``tables``. What is about no single table is counted; a message of which nobody can tell
    the table is an ``unreadable`` record of every table, for it may be of any: none steps over it.

    A barrier holds for its own channel only, and the others may be behind it: it is counted, too."""
    for message in messages:
        for item in decoder.decode(message):
            if not isinstance(item, ChangeRecord) or (item.table in tables and item.op != Operation.BARRIER):
                yield item
            elif item.op == Operation.UNREADABLE and not item.table:
                for table in sorted(tables):
                    yield replace(item, table=table)
            else:
                yield Ignored(1)
