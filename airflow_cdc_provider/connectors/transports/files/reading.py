"""Messages out of files: lines, packed or not, Avro, Parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice

from airflow_cdc_provider.connectors.decoders.common.avro_file import first_block
from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.decoders.common.row_files import SHOWN_BYTES, avro_messages, parquet_messages
from airflow_cdc_provider.connectors.decoders.common.saved_messages import AVRO, PARQUET, message_of_line
from airflow_cdc_provider.connectors.transports.files.folder import File, Folder
from airflow_cdc_provider.connectors.transports.files.lines import GZIP, Damaged, lines_of, unpacked

HEAD_MESSAGES = 50
Content = Callable[[Iterable[bytes]], bytes]


def messages_of(path: str, pieces: Iterable[bytes], whole_avro: bool, avro: Content = b"".join) -> Iterator[Message]:
    """In the order of the file. Lines are taken one by one; what only makes sense as a whole is read as a whole. What
    cannot be unpacked or opened is one message, for the decoder to say so. ``whole_avro``: so are Avro files. ``avro``:
    how much of such a file is read."""
    parts = iter(pieces)
    start = next(parts, b"")
    parts = chain([start], parts)
    if start.startswith(PARQUET):
        yield from parquet_messages(b"".join(parts), path)
    elif start.startswith(AVRO):
        yield from avro_messages(avro(parts), path, whole_avro)
    elif start.startswith(GZIP):
        yield from _unpacked(path, parts, start, whole_avro, avro)
    else:
        yield from _lines(path, parts, start)


def head_of(folder: Folder, file: File, whole_avro: bool) -> list[Message]:
    """The first messages."""
    pieces = folder.pieces(file.path)
    return [] if pieces is None else list(islice(messages_of(file.path, pieces, whole_avro, _beginning), HEAD_MESSAGES))


def _beginning(parts: Iterable[bytes]) -> bytes:
    """Of a large Avro file no more than is needed."""
    data = b""
    for part in parts:
        data += part
        if block := first_block(data):
            return block
    return data


def _unpacked(path: str, parts: Iterable[bytes], start: bytes, whole_avro: bool, avro: Content) -> Iterator[Message]:
    """An Avro file may be packed as a whole."""
    plain = unpacked(parts)
    try:
        first = next(plain, b"")
        if first.startswith(AVRO):
            yield from avro_messages(avro(chain([first], plain)), path, whole_avro)
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
