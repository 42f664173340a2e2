"""The tables of a feed, by the first messages of its topics or files. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from airflow_cdc_provider.connectors.decoders.common.message import CopiedTable, Message
from airflow_cdc_provider.connectors.transports.messages.decoding import Format
from airflow_cdc_provider.core.log.change_records import CONTROL_OPERATIONS, ChangeRecord
from airflow_cdc_provider.core.log.positions import EPOCH_DIGITS
from airflow_cdc_provider.core.log.server_orders import origin_of
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import TableSchema

LAST = "~"
"""Later than every order key."""


@dataclass(frozen=True)
class DiscoveredTables:
    """``schemas``: table → schema, without tables whose schema is unknown. ``topics``: topic → the tables with rows in
    its first messages; none for a topic with schemas only. ``schema_topics``: those with changes of schemas only.
    ``first_keys``: table → the lowest order key of its first messages, without its epoch. ``origins``: table → the
    connectors and databases of its rows, where messages name them."""

    schemas: Mapping[str, TableSchema]
    topics: Mapping[str, frozenset[str]]
    schema_topics: frozenset[str] = frozenset()
    first_keys: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def tables(self) -> frozenset[str]:
        return frozenset[str]().union(*self.topics.values())

    @property
    def without_schema(self) -> tuple[str, ...]:
        return tuple(sorted(self.tables - self.schemas.keys()))


def discover_tables(
    message_format: Format, heads: Iterable[Message], declared: Mapping[str, TableSchema]
) -> DiscoveredTables:
    """Declared schemas take precedence. Of the schemas that come with rows, that of the first change in the source is
    used, whatever its partition: a copy starts empty before it and follows the changes from there. Of the schemas
    without rows, the last is used to decode rows that have none."""
    decoder = message_format.decoder()
    without_rows: dict[str, TableSchema] = {}
    with_rows: dict[str, TableSchema] = {}
    topics: dict[str, set[str]] = {}
    with_changes: set[str] = set()
    first_keys: dict[str, str] = {}
    announced: dict[str, TableSchema] = {}
    origins: dict[str, set[str]] = {}
    for message in heads:
        of_topic = topics.setdefault(message.topic, set())
        items = decoder.decode(message)
        records = [item for item in items if isinstance(item, ChangeRecord) and item.op not in CONTROL_OPERATIONS]
        rows = {record.table for record in records}
        of_topic.update(rows - {""})
        for schema in items:
            if isinstance(schema, TableSchema):
                announced[schema.schema_id] = schema
                if schema.table not in rows:
                    without_rows[schema.table] = schema
                    with_changes.add(message.topic)
        for record in records:
            origins.setdefault(record.table, set()).update(_origins(record))
            key = record.order_key[EPOCH_DIGITS:]
            if record.schema_id in announced and key < first_keys.get(record.table, LAST):
                first_keys[record.table], with_rows[record.table] = key, announced[record.schema_id]
    schemas = {**without_rows, **with_rows, **declared}
    schema_topics = frozenset(topic for topic in with_changes if not topics[topic])
    by_topic = {topic: frozenset(tables) for topic, tables in topics.items()}
    of_tables = {table: frozenset(found) for table, found in origins.items() if table}
    return DiscoveredTables(schemas, by_topic, schema_topics, first_keys, of_tables)


def _origins(record: ChangeRecord) -> Iterator[str]:
    """Of a change in an envelope of Debezium, whose position is the envelope."""
    source = json.loads(record.position).get("source")
    if isinstance(source, dict) and "connector" in source:
        yield origin_of(source)


def tables_without_rows(
    message_format: Format, heads: Iterable[Message], schemas: Mapping[str, TableSchema]
) -> dict[str, str]:
    """Tables whose first messages contain the keys of changed rows, but not their values → the remedy."""
    tables_by_name = {table: CopiedTable(TableRule(table), schema) for table, schema in schemas.items()}
    decoder = message_format.decoder(tables=tables_by_name)
    items = (item for message in heads for item in decoder.decode(message))
    tables = {item.table for item in items if isinstance(item, ChangeRecord) and item.refetch}
    return {table: decoder.whole_rows_remedy.format(table=table) for table in tables}
