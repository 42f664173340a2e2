"""Messages that somebody saved into a file: lines, or rows of Avro or Parquet. Pure: from bytes to messages.

A line is the value alone, or a message with what came beside it: ``{"topic": …, "partition": …, "offset": …, "key": …,
"headers": …, "value": …}``, where the value may be called ``payload``, as kcat's ``-J`` does. Keys and values are JSON,
or texts that hold JSON.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
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
from airflow_cdc_provider.core.errors import CommandRefused, Problem
from airflow_cdc_provider.core.registry import load_class
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import TableSchema

AVRO, PARQUET, GZIP = b"Obj\x01", b"PAR1", b"\x1f\x8b"
BESIDE = frozenset({"topic", "partition", "offset", "key", "headers", "value", "payload", "ts", "tstype", "timestamp"})
BESIDE |= {"broker", "key_schema_id", "value_schema_id"}


def decoded(kind: str, name: str, data: bytes, schemas: Any, options: Mapping[str, Any]) -> Iterator[Item]:
    """What the file ``name`` says. ``schemas``: a table schema as staging keeps it, or a list of such; None where the
    messages tell everything."""
    known = table_schemas(schemas)
    tables = {schema.table: CopiedTable(TableRule(schema.table), schema) for schema in known} or None
    decoder: Decoder = load_class("format", kind, FORMATS)(DecoderSettings(1, tables, options, guess=tables is None))
    table = known[0].table if len(known) == 1 else Path(name).stem
    for message in messages(data, name, _topic(kind, table, options) or name, decoder.reads_avro):
        yield from decoder.decode(message)


def _topic(kind: str, table: str, options: Mapping[str, Any]) -> str:
    """How the topic of a table is called: messages that name none are of the only table of the schema file, else of
    the one that the file is named for."""
    match kind:
        case "ydb":
            return f"{table}/feed"
        case "debezium":
            return f"{options.get('topic_prefix') or 'topic'}.{table}"
        case _:
            return ""


def table_schemas(told: Any) -> list[TableSchema]:
    """Raises CommandRefused where it is no table schema."""
    if told is None:
        return []
    try:
        return [from_plain(TableSchema, one) for one in (told if isinstance(told, list) else [told])]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CommandRefused(
            Problem(
                "CLI017",
                "the schema file holds no table schema",
                found=type(error).__name__,
                allowed='{"table": …, "columns": [{"name": …, "type": {"kind": …}}], "key": […]}, or a list of such',
                do="take one from schemas/ in staging, or `after` of a record whose op is schema",
            )
        ) from error


def messages(data: bytes, name: str, topic: str, whole_avro: bool) -> Iterator[Message]:
    """``topic``: theirs, where they name none."""
    plain = unpacked(data, name)
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


def unpacked(data: bytes, name: str) -> bytes:
    if not data.startswith(GZIP):
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as error:
        raise CommandRefused(
            Problem("CLI018", "the file cannot be unpacked", where=name, found=type(error).__name__)
        ) from error


def message_of_line(line: bytes, topic: str, number: int) -> Message:
    """A line that is no JSON is handed on as it is: the decoder says what is wrong with it."""
    try:
        told = parse(line)
    except DecodeError:
        told = None
    if not isinstance(told, dict) or not (
        "topic" in told and told.keys() & {"value", "payload"} and told.keys() <= BESIDE
    ):
        return Message(line, topic=topic, channel=topic, offset=number)
    own = str(told["topic"])
    partition, offset = told.get("partition", 0), told.get("offset", number)
    value = told["value"] if "value" in told else told["payload"]
    offset = offset if type(offset) is int and offset >= 0 else number
    return Message(
        _bytes(value), _bytes(told.get("key")), _headers(told.get("headers")), own, f"{own}/{partition}", offset
    )


def _bytes(told: Any) -> bytes | None:
    if told is None:
        return None
    return (told if isinstance(told, str) else dumps(told)).encode()


def _headers(told: Any) -> Headers:
    """An object, or names and values in turn."""
    if isinstance(told, dict):
        return tuple((name, _bytes(value)) for name, value in told.items())
    if isinstance(told, list):
        return tuple((str(name), _bytes(value)) for name, value in zip(told[::2], told[1::2], strict=False))
    return ()


def read_schema(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise CommandRefused(Problem("CLI017", "the schema file is not JSON", found=type(error).__name__)) from error
