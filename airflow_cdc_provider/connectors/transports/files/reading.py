"""Messages of files: lines, gzip-compressed or not, Avro, Parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice

from airflow_cdc_provider.connectors.decoders.common.avro_file import first_block
from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.decoders.common.row_files import SHOWN_BYTES, avro_messages, parquet_messages
from airflow_cdc_provider.connectors.decoders.common.saved_messages import AVRO, PARQUET, message_of_line
from airflow_cdc_provider.connectors.transports.files.companions import pair_messages
from airflow_cdc_provider.connectors.transports.files.folder import File, Folder
from airflow_cdc_provider.connectors.transports.files.lines import GZIP, DamagedFile, decompress, split_lines

HEAD_MESSAGES = 50
Content = Callable[[Iterable[bytes]], bytes]


def read_messages(
    path: str,
    chunks: Iterable[bytes],
    whole_avro: bool,
    avro: Content = b"".join,
    keys: Iterable[bytes] | None = None,
) -> Iterator[Message]:
    """In the order of the file. Lines are streamed, Avro and Parquet files are read whole. A file that cannot be
    decompressed or opened yields one message, which the decoder reports as unreadable. ``whole_avro``: an Avro file is
    one message. ``avro``: reads the content of an Avro file. ``keys``: the content of a file with the keys."""
    values = _read_values(path, chunks, whole_avro, avro)
    return values if keys is None else pair_messages(values, _read_values(path, keys, False, avro, True), path)


def _read_values(
    path: str, chunks: Iterable[bytes], whole_avro: bool, avro: Content, are_keys: bool = False
) -> Iterator[Message]:
    remaining = iter(chunks)
    start = next(remaining, b"")
    chunks = chain([start], remaining)
    if start.startswith(PARQUET):
        yield from parquet_messages(b"".join(chunks), path, are_keys)
    elif start.startswith(AVRO):
        yield from avro_messages(avro(chunks), path, whole_avro, are_keys)
    elif start.startswith(GZIP):
        yield from _gzip_messages(path, chunks, start, whole_avro, avro)
    else:
        yield from _line_messages(path, chunks, start)


def read_head(folder: Folder, file: File, whole_avro: bool) -> list[Message]:
    """The first messages of a file."""
    chunks = folder.read_chunks(file.path)
    if chunks is None:
        return []
    values = islice(read_messages(file.path, chunks, whole_avro, _first_avro_block), HEAD_MESSAGES)
    key_chunks = folder.read_chunks(file.keys) if file.keys else None
    if key_chunks is None:
        return list(values)
    keys = _read_values(file.path, key_chunks, False, _first_avro_block, True)
    return [value._replace(key=key.value) for value, key in zip(values, keys, strict=False)]


def _first_avro_block(chunks: Iterable[bytes]) -> bytes:
    """The header and the first block, which are enough for the first messages."""
    data = b""
    for chunk in chunks:
        data += chunk
        if block := first_block(data):
            return block
    return data


def _gzip_messages(
    path: str, chunks: Iterable[bytes], start: bytes, whole_avro: bool, avro: Content
) -> Iterator[Message]:
    """The compressed file may be an Avro file."""
    plain = decompress(chunks)
    try:
        first = next(plain, b"")
        if first.startswith(AVRO):
            yield from avro_messages(avro(chain([first], plain)), path, whole_avro)
            return
    except DamagedFile:
        yield Message(start[:SHOWN_BYTES], topic=path, channel=path)
        return
    yield from _line_messages(path, chain([first], plain), start)


def _line_messages(path: str, chunks: Iterable[bytes], start: bytes) -> Iterator[Message]:
    number = 0
    try:
        for line in split_lines(chunks):
            if line.strip():
                yield message_of_line(line, path, number)
            number += 1
    except DamagedFile:
        yield Message(start[:SHOWN_BYTES], topic=path, channel=path, offset=number)
