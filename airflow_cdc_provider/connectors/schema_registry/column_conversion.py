"""Messages in Avro as columns: groups of messages of one topic with the same schemas."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from airflow_cdc_provider.connectors.decoders.common.message import SMALL_BATCH, Message, MessageColumns
from airflow_cdc_provider.connectors.schema_registry.avro import AvroReader
from airflow_cdc_provider.connectors.schema_registry.framing import ID_END, KEY, VALUE, WITH_ID, Side, has_header

ReaderOf = Callable[[Message, Side], object]
"""The reader of a message's key or value, whose schema id is in the content."""


def message_columns(messages: Iterable[Message], reader_of: ReaderOf) -> tuple[list[MessageColumns], list[Message]]:
    """The messages that can be read as columns, and the others. Raises the errors of ``reader_of``."""
    groups: defaultdict[tuple[str, bytes, bytes], list[Message]] = defaultdict(list)
    others: list[Message] = []
    for message in messages:
        value, key = message.value, message.key
        if value and key and value[0] == key[0] == WITH_ID and not _has_schema_header(message):
            groups[message.topic, value[:ID_END], key[:ID_END]].append(message)
        else:
            others.append(message)
    made = []
    for group in groups.values():
        columns = _columns_of(group, reader_of) if len(group) > SMALL_BATCH else None
        if columns is None:
            others += group
            continue
        made.append(columns)
        if len(columns.messages) < len(group):
            offsets = {(message.channel, message.offset) for message in columns.messages}
            others += [message for message in group if (message.channel, message.offset) not in offsets]
    return _with_tombstones(made, others)


def _has_schema_header(message: Message) -> bool:
    headers = message.headers
    return bool(headers) and (has_header(headers, KEY.header) or has_header(headers, VALUE.header))


def _columns_of(group: Sequence[Message], reader_of: ReaderOf) -> MessageColumns | None:
    """Of those messages that can be read together."""
    value_reader, key_reader = reader_of(group[0], VALUE), reader_of(group[0], KEY)
    if not isinstance(value_reader, AvroReader) or not isinstance(key_reader, AvroReader):
        return None
    if not value_reader.has_struct_columns or not key_reader.has_struct_columns:
        return None
    rows, values = value_reader.read_columns([(message.value or b"")[ID_END:] for message in group])
    with_value = [group[row] for row in rows]
    rows, keys = key_reader.read_columns([(message.key or b"")[ID_END:] for message in with_value])
    if not rows:
        return None
    if len(rows) < len(with_value):
        with_value, values = [with_value[row] for row in rows], values.take(rows)
    return MessageColumns(with_value, values, keys, value_reader.schema, key_reader.schema)


def _with_tombstones(
    made: Sequence[MessageColumns], others: Sequence[Message]
) -> tuple[list[MessageColumns], list[Message]]:
    """Tombstones of decoded keys are counted, since nothing else is in them."""
    if all(message.value is not None for message in others):
        return list(made), list(others)
    owner = {(columns.topic, message.key): n for n, columns in enumerate(made) for message in columns.messages}
    tombstones = Counter[int]()
    rest = []
    for message in others:
        columns = owner.get((message.topic, message.key)) if message.value is None else None
        if columns is None:
            rest.append(message)
        else:
            tombstones[columns] += 1
    return [replace(columns, tombstones=tombstones[n]) for n, columns in enumerate(made)], rest
