"""Which tables a feed is about, as the first messages of its topics or files tell. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from airflow_cdc_provider.connectors.decoders.common.message import CopiedTable, Message
from airflow_cdc_provider.connectors.transports.messages.decoding import Format
from airflow_cdc_provider.core.log.change_records import CONTROL_OPERATIONS, ChangeRecord
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import TableSchema


@dataclass(frozen=True)
class DiscoveredTables:
    """``schemas``: table → schema, of those that have one. ``topics``: topic → the tables whose rows its first messages
    tell; a topic that tells schemas only is none of theirs. ``mute``: tables whose messages tell no schema, and nobody
    else does."""

    schemas: Mapping[str, TableSchema]
    topics: Mapping[str, frozenset[str]]

    @property
    def tables(self) -> frozenset[str]:
        return frozenset[str]().union(*self.topics.values())

    @property
    def mute(self) -> tuple[str, ...]:
        return tuple(sorted(self.tables - self.schemas.keys()))

    def topics_of(self, tables: Iterable[str]) -> list[str]:
        wanted = frozenset(tables)
        return sorted(topic for topic, of in self.topics.items() if of & wanted)


def discovered(form: Format, heads: Iterable[Message], declared: Mapping[str, TableSchema]) -> DiscoveredTables:
    """What is declared counts more than what is told. Of the schemas that come with rows the first counts: a copy
    starts empty before the first row and follows from there. Of those that come alone the last counts: rows without
    schema are read by it."""
    decoder = form.decoder()
    alone: dict[str, TableSchema] = {}
    with_rows: dict[str, TableSchema] = {}
    topics: dict[str, set[str]] = {}
    for message in heads:
        of = topics.setdefault(message.topic, set())
        items = decoder.decode(message)
        rows = {item.table for item in items if isinstance(item, ChangeRecord) and item.op not in CONTROL_OPERATIONS}
        of.update(rows - {""})
        for schema in items:
            if isinstance(schema, TableSchema) and schema.table in rows:
                with_rows.setdefault(schema.table, schema)
            elif isinstance(schema, TableSchema):
                alone[schema.table] = schema
    return DiscoveredTables({**alone, **with_rows, **declared}, {topic: frozenset(of) for topic, of in topics.items()})


def undiscovered(form: Format, heads: Iterable[Message], schemas: Mapping[str, TableSchema]) -> dict[str, str]:
    """Tables whose first messages tell that rows change, and not what they are → how to have that told."""
    decoder = form.decoder(tables={table: CopiedTable(TableRule(table), schema) for table, schema in schemas.items()})
    items = (item for message in heads for item in decoder.decode(message))
    tables = {item.table for item in items if isinstance(item, ChangeRecord) and item.refetch}
    return {table: decoder.whole_rows_remedy.format(table=table) for table in tables}
