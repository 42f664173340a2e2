"""Avro and Parquet files as messages. Pure.

A row with a ``value`` is a message, with optional ``key`` and ``topic``. Any other row is an event, and becomes the
JSON that its writer would have sent. For files written by Kafka Connect, the JSON includes the schema.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_cdc_provider.connectors.decoders.common import avro_file, connect_avro
from airflow_cdc_provider.connectors.decoders.common.dead_letters import NOT_JSON, DecodeError
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.jsonable import jsonable
from airflow_cdc_provider.connectors.decoders.common.message import Message

AVRO_IN_PARQUET = b"parquet.avro.schema"
SHOWN_BYTES = 64 << 10
VALUE, KEY, TOPIC = "value", "key", "topic"
INTEGERS = {32: pa.int32(), 64: pa.int64()}

Row = Mapping[str, Any]


def avro_messages(data: bytes, path: str, whole: bool, are_keys: bool = False) -> Iterator[Message]:
    """``whole``: the file is one message. ``are_keys``: each row is a key, whatever its columns are named. The rest of
    a damaged file is one message, which the decoder reports."""
    if whole:
        yield Message(data, topic=path, channel=path)
        return
    number = 0
    try:
        file = avro_file.open_file(data)
        to_text = _event_encoder(file.schema)
        for record in file.records():
            yield _message(record.value, to_text, path, number, are_keys)
            number += 1
    except DecodeError:
        yield Message(data[:SHOWN_BYTES], topic=path, channel=path, offset=number)


def parquet_messages(data: bytes, path: str, are_keys: bool = False) -> Iterator[Message]:
    """As ``avro_messages``, for Parquet."""
    number = 0
    try:
        with pq.ParquetFile(io.BytesIO(data)) as file:
            avro = json.loads((file.schema_arrow.metadata or {}).get(AVRO_IN_PARQUET, b"null"))
            to_text = _event_encoder(avro)
            for batch in file.iter_batches():
                rows = batch.cast(_without_times(batch.schema)) if connect_avro.is_written_by_connect(avro) else batch
                for row in rows.to_pylist():
                    yield _message(row, to_text, path, number, are_keys)
                    number += 1
    except (DecodeError, pa.ArrowException, OSError, ValueError):  # OSError: invalid content, the data is in memory
        yield Message(data[:SHOWN_BYTES], topic=path, channel=path, offset=number)


def _event_encoder(avro: Any) -> Callable[[Row], str]:
    """Converts a row to the text of an event. This function and its result raise DecodeError."""
    if not connect_avro.is_written_by_connect(avro):
        return lambda row: dumps(jsonable(row))
    form = connect_avro.form_of(avro)
    prefix = f'{{"schema":{dumps(form.schema)},"payload":'

    def to_text(row: Row) -> str:
        try:
            return f"{prefix}{dumps(form.to_json(row))}}}"
        except (AttributeError, KeyError, TypeError) as error:
            raise DecodeError(NOT_JSON, "a row does not match the schema in the file") from error

    return to_text


def _message(row: Row, to_text: Callable[[Row], str], path: str, number: int, is_key: bool) -> Message:
    if not is_key and isinstance(row.get(VALUE, 0), bytes | str | None):
        topic = row.get(TOPIC)
        return Message(
            _bytes(row[VALUE]), _bytes(row.get(KEY)), (), topic if topic else path, path, number, by_line=True
        )
    return Message(to_text(row).encode(), topic=path, channel=path, offset=number, by_line=True)


def _bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else dumps(jsonable(value))).encode()


def _without_times(schema: pa.Schema) -> pa.Schema:
    """Dates and times as the integers that they are stored as."""
    return pa.schema([field.with_type(_storage_type(field.type)) for field in schema])


def _storage_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_temporal(kind):
        return INTEGERS[kind.bit_width]
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_storage_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_storage_type(kind.value_type)))
    return kind
