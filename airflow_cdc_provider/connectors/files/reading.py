"""Messages out of files: lines, Avro, Parquet, packed or not."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

from airflow_cdc_provider.connectors.files.folder import File, Folder
from airflow_cdc_provider.connectors.formats.message import Message
from airflow_cdc_provider.connectors.formats.saved import AVRO, GZIP, messages
from airflow_cdc_provider.core.errors import CommandRefused

PARQUET = b"PAR1"
HEAD_BYTES = 256 << 10
HEAD_MESSAGES = 50


def messages_of(path: str, data: bytes) -> Iterator[Message]:
    """In the order of the file. What cannot be unpacked or opened is one message, for the decoder to say so."""
    try:
        if data.startswith(PARQUET):
            yield from _rows(path, data)
        else:
            yield from messages(data, path, "")
    except CommandRefused:
        yield Message(data, topic=path, channel=path)


def head_of(folder: Folder, file: File) -> list[Message]:
    """The first messages. A file that only makes sense as a whole is read as a whole."""
    start = folder.head(file, HEAD_BYTES)
    if len(start) == file.size or start.startswith((AVRO, GZIP, PARQUET)):
        data = start if len(start) == file.size else folder.read(file.path) or b""
    else:
        data = start[: start.rfind(b"\n") + 1]
    found = []
    for message in messages_of(file.path, data):
        found.append(message)
        if len(found) == HEAD_MESSAGES:
            break
    return found


def _rows(path: str, data: bytes) -> Iterator[Message]:
    """Rows with a ``value`` are messages, with the key beside it if there is one; others are events themselves."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(io.BytesIO(data)) as file:
            as_messages = "value" in file.schema_arrow.names
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    value = row["value"] if as_messages else json.dumps(row, ensure_ascii=False, default=str)
                    yield Message(_bytes(value), _bytes(row.get("key")), (), path, path, number)
                    number += 1
    except pa.ArrowException:
        yield Message(data, topic=path, channel=path, offset=number)


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
