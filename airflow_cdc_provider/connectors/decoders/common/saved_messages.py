"""Messages saved in a file: lines, or rows of Avro or Parquet. Pure: from bytes to messages.

A line is a value, or a message with its metadata: ``{"topic": …, "partition": …, "offset": …, "key": …, "headers": …,
"value": …}``. The value may be named ``payload``, as in the output of ``kcat -J``. Keys and values are JSON, or strings
that contain JSON.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from airflow_cdc_provider.connectors import FORMATS
from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps, parse
from airflow_cdc_provider.connectors.decoders.common.message import (
    CopiedTable,
    Decoder,
    DecoderSettings,
    Headers,
    Item,
    Message,
)
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CommandRefused
from airflow_cdc_provider.core.registry import load_class
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.source_names import without_quotes
from airflow_cdc_provider.core.table.states import TableState

AVRO, PARQUET, GZIP, REGISTERED = b"Obj\x01", b"PAR1", b"\x1f\x8b", b"\0"
MESSAGE_MEMBERS = frozenset(
    {"topic", "partition", "offset", "key", "headers", "value", "payload", "ts", "tstype", "timestamp"}
)
MESSAGE_MEMBERS |= {"broker", "key_schema_id", "value_schema_id"}


def decode_file(
    kind: str,
    name: str,
    data: bytes,
    schemas: Any,
    options: Mapping[str, Any],
    convert: Callable[[Iterable[Message]], Iterable[Message]] = iter,
) -> Iterator[Item]:
    """The items of the file ``name``. ``schemas``: a table schema in the form of staging's ``schemas/``, or a list of
    them; None if the messages contain their schemas. ``convert``: messages as they are saved → as the decoder expects
    them."""
    known = table_schemas(schemas)
    tables = {schema.table: CopiedTable(TableRule(schema.table), schema) for schema in known} or None
    decoder: Decoder = load_class("format", kind, FORMATS)(DecoderSettings(1, tables, options, guess=tables is None))
    table = known[0].table if len(known) == 1 else Path(name).stem
    for message in convert(read_messages(data, name, _topic(kind, table, options) or name, decoder.reads_avro)):
        yield from decoder.decode(message._replace(by_line=False))


def _topic(kind: str, table: str, options: Mapping[str, Any]) -> str:
    """The topic for messages that name none: that of the only table in the schema file, otherwise of the table with the
    name of the file."""
    match kind:
        case "ydb":
            return f"{without_quotes(table)}/feed"
        case "debezium":
            return f"{options.get('topic_prefix') or 'topic'}.{without_quotes(table)}"
        case _:
            return ""


def table_schemas(value: Any) -> list[TableSchema]:
    """Raises CommandRefused (CLI017) if ``value`` is not a table schema or a list of them."""
    if value is None:
        return []
    try:
        return [from_plain(TableSchema, schema) for schema in (value if isinstance(value, list) else [value])]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CommandRefused.of(
            "CLI017",
            "the schema file does not contain a table schema",
            found=type(error).__name__,
            allowed='{"table": …, "columns": [{"name": …, "type": {"kind": …}}], "key": […]}, or a list of these',
            do="copy one from schemas/ in staging, or from `after` of a record with op schema",
        ) from error


def tasks_of(schemas: Iterable[TableSchema]) -> list[TableTask]:
    """Tasks that copy these tables whole."""
    return [TableTask(s.table, s.table, s, TableRule(s.table), "", TableState.REPLICATING) for s in schemas]


def read_messages(data: bytes, name: str, topic: str, whole_avro: bool) -> Iterator[Message]:
    """``topic``: for messages that name none."""
    plain = decompress(data, name)
    if plain.startswith(REGISTERED):  # one message, as consumers write it to a file
        yield Message(plain, topic=topic, channel=topic)
        return
    if plain.startswith((AVRO, PARQUET)):
        from airflow_cdc_provider.connectors.decoders.common import row_files

        if plain.startswith(AVRO):
            yield from row_files.avro_messages(plain, name, whole_avro)
        else:
            yield from row_files.parquet_messages(plain, name)
        return
    for number, line in enumerate(plain.splitlines()):
        if line.strip():
            yield message_of_line(line, topic, number)


def decompress(data: bytes, name: str) -> bytes:
    """Raises CommandRefused (CLI018)."""
    if not data.startswith(GZIP):
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as error:
        raise CommandRefused.of(
            "CLI018", "the file cannot be decompressed", where=name, found=type(error).__name__
        ) from error


def message_of_line(line: bytes, topic: str, number: int) -> Message:
    """A line that is not JSON becomes a value as it is; the decoder reports it."""
    try:
        members = parse(line)
    except DecodeError:
        members = None
    if not isinstance(members, dict) or not (
        "topic" in members and members.keys() & {"value", "payload"} and members.keys() <= MESSAGE_MEMBERS
    ):
        return Message(line, topic=topic, channel=topic, offset=number, by_line=True)
    topic = str(members["topic"])
    partition, given = members.get("partition", 0), members.get("offset")
    value = members["value"] if "value" in members else members["payload"]
    offset = given if type(given) is int and given >= 0 else None
    return Message(
        _bytes(value),
        _bytes(members.get("key")),
        _headers(members.get("headers")),
        topic,
        f"{topic}/{partition}",
        number if offset is None else offset,
        by_line=offset is None,
    )


def _bytes(value: Any) -> bytes | None:
    if value is None:
        return None
    return (value if isinstance(value, str) else dumps(value)).encode()


def _headers(headers: Any) -> Headers:
    """From an object, or from a list of alternating names and values."""
    if isinstance(headers, dict):
        return tuple((name, _bytes(value)) for name, value in headers.items())
    if isinstance(headers, list):
        return tuple((str(name), _bytes(value)) for name, value in zip(headers[::2], headers[1::2], strict=False))
    return ()


def read_schema(data: bytes) -> Any:
    """Raises CommandRefused (CLI017)."""
    try:
        return json.loads(data)
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise CommandRefused.of("CLI017", "the schema file is not JSON", found=type(error).__name__) from error
