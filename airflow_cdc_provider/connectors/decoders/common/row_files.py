"""Files of rows, Avro and Parquet, as messages. Pure.

A row with a ``value`` is a message, with its key and topic beside it if there are any. Any other one is an event: it
becomes the JSON that its writer would have sent. Where Kafka Connect wrote the file, that has the schema beside it.
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
WHOLE_NUMBERS = {32: pa.int32(), 64: pa.int64()}

Row = Mapping[str, Any]


def avro_messages(data: bytes, path: str, whole: bool) -> Iterator[Message]:
    """``whole``: the file is one message. So is what is damaged or cannot be opened, for the decoder to say so."""
    if whole:
        yield Message(data, topic=path, channel=path)
        return
    number = 0
    try:
        file = avro_file.open_file(data)
        told = _told(file.schema)
        for record in file.records():
            yield _message(record.value, told, path, number)
            number += 1
    except DecodeError:
        yield Message(data[:SHOWN_BYTES], topic=path, channel=path, offset=number)


def parquet_messages(data: bytes, path: str) -> Iterator[Message]:
    """The same of Parquet."""
    number = 0
    try:
        with pq.ParquetFile(io.BytesIO(data)) as file:
            avro = json.loads((file.schema_arrow.metadata or {}).get(AVRO_IN_PARQUET, b"null"))
            told = _told(avro)
            for batch in file.iter_batches():
                rows = batch.cast(_unlogical(batch.schema)) if connect_avro.written_by_connect(avro) else batch
                for row in rows.to_pylist():
                    yield _message(row, told, path, number)
                    number += 1
    except (DecodeError, pa.ArrowException, OSError, ValueError):  # in memory no disk can fail
        yield Message(data[:SHOWN_BYTES], topic=path, channel=path, offset=number)


def _told(avro: Any) -> Callable[[Row], str]:
    """How a row becomes the text of an event. Both raise Unreadable."""
    if not connect_avro.written_by_connect(avro):
        return lambda row: dumps(jsonable(row))
    form = connect_avro.form_of(avro)
    begin = f'{{"schema":{dumps(form.schema)},"payload":'

    def told(row: Row) -> str:
        try:
            return f"{begin}{dumps(form.json(row))}}}"
        except (AttributeError, KeyError, TypeError) as error:
            raise DecodeError(NOT_JSON, "a row that does not fit the schema in the file") from error

    return told


def _message(row: Row, told: Callable[[Row], str], path: str, number: int) -> Message:
    if isinstance(row.get(VALUE, 0), bytes | str | None):
        topic = row.get(TOPIC)
        return Message(_bytes(row[VALUE]), _bytes(row.get(KEY)), (), topic if topic else path, path, number)
    return Message(told(row).encode(), topic=path, channel=path, offset=number)


def _bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else dumps(jsonable(value))).encode()


def _unlogical(schema: pa.Schema) -> pa.Schema:
    """Times as the whole numbers that they are stored as."""
    return pa.schema([field.with_type(_stored(field.type)) for field in schema])


def _stored(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_temporal(kind):
        return WHOLE_NUMBERS[kind.bit_width]
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_stored(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_stored(kind.value_type)))
    return kind
