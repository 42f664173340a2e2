"""Messages out of files: lines, packed or not, Avro, Parquet."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from airflow_cdc_provider.connectors.files.folder import File, Folder
from airflow_cdc_provider.connectors.files.lines import GZIP, Damaged, lines_of, unpacked
from airflow_cdc_provider.connectors.formats.message import Message
from airflow_cdc_provider.connectors.formats.saved import AVRO, message_of_line

PARQUET = b"PAR1"
HEAD_MESSAGES = 50
SHOWN_BYTES = 64 << 10


def messages_of(path: str, pieces: Iterable[bytes]) -> Iterator[Message]:
    """In the order of the file. Lines are taken one by one; what only makes sense as a whole is read as a whole. What
    cannot be unpacked or opened is one message, for the decoder to say so."""
    parts = iter(pieces)
    start = next(parts, b"")
    parts = chain([start], parts)
    if start.startswith(PARQUET):
        yield from _rows(path, b"".join(parts))
    elif start.startswith(AVRO):
        yield Message(b"".join(parts), topic=path, channel=path)
    elif start.startswith(GZIP):
        yield from _unpacked(path, parts, start)
    else:
        yield from _lines(path, parts, start)


def head_of(folder: Folder, file: File) -> list[Message]:
    """The first messages."""
    pieces = folder.pieces(file.path)
    return [] if pieces is None else list(islice(messages_of(file.path, pieces), HEAD_MESSAGES))


def _unpacked(path: str, parts: Iterable[bytes], start: bytes) -> Iterator[Message]:
    """An Avro file may be packed as a whole."""
    plain = unpacked(parts)
    try:
        first = next(plain, b"")
        if first.startswith(AVRO):
            yield Message(first + b"".join(plain), topic=path, channel=path)
            return
    except Damaged:
        yield Message(start[:SHOWN_BYTES], topic=path, channel=path)
        return
    yield from _lines(path, chain([first], plain), start)


def _lines(path: str, parts: Iterable[bytes], start: bytes) -> Iterator[Message]:
    number = 0
    try:
        for line in lines_of(parts):
            if line.strip():
                yield message_of_line(line, path, number)
            number += 1
    except Damaged:
        yield Message(start[:SHOWN_BYTES], topic=path, channel=path, offset=number)


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
        yield Message(data[:SHOWN_BYTES], topic=path, channel=path, offset=number)


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
