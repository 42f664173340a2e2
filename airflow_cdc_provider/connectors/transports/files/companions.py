"""Keys in files of their own, as sinks of Kafka Connect write them beside the files of the values. Pure.

    orders+0+0000000000.avro            values
    orders+0+0000000000.keys.avro       keys of the same messages, in the same order
    orders+0+0000000000.headers.avro    headers

Values are written first. Where other files of a folder have keys, a file without keys waits for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from airflow_cdc_provider.connectors.decoders.common.dead_letters import CONTRADICTION
from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.transports.files.folder import File

EXTENSIONS = r"(?:\.(?:avro|bin|brotli|gz|gzip|json|jsonl|lz4|parquet|snappy|zstd))+"
NAME = re.compile(rf"(?P<stem>.+?)(?:\.(?P<part>keys|headers))?{EXTENSIONS}")
UNEQUAL = f"{CONTRADICTION} the file of keys and the file of values have different numbers of messages"


def join_keys(listed: Sequence[File]) -> list[File]:
    """The files of values, each with its file of keys. Files of keys and headers without a file of values are returned
    as they are."""
    names = {file.path: NAME.fullmatch(file.path) for file in listed}
    stems = {match["stem"] for match in names.values() if match is not None and match["part"] is None}
    keys: dict[str, File] = {}
    values: list[tuple[File, str]] = []
    for file in listed:
        match = names[file.path]
        if match is None or match["part"] is None or match["stem"] not in stems:
            values.append((file, match["stem"] if match else file.path))
        elif match["part"] == "keys":
            keys[match["stem"]] = file
    return [_with_keys(file, keys.get(stem)) for file, stem in values]


def awaits_keys(files: Iterable[File]) -> frozenset[str]:
    """Paths of files without keys in folders where other files have keys."""
    files = list(files)
    folders = {_folder(file.path) for file in files if file.keys}
    return frozenset(file.path for file in files if not file.keys and _folder(file.path) in folders)


def pair_messages(values: Iterable[Message], keys: Iterable[Message], path: str) -> Iterator[Message]:
    """The values with their keys. If the numbers differ, the messages without a partner say so."""
    remaining = iter(keys)
    offset = 0
    for value in values:
        offset = value.offset + 1
        key = next(remaining, None)
        yield value._replace(reason=UNEQUAL) if key is None else value._replace(key=key.value)
    if next(remaining, None) is not None:
        yield Message(b"", topic=path, channel=path, offset=offset, reason=UNEQUAL)


def _with_keys(file: File, keys: File | None) -> File:
    if keys is None:
        return file
    return replace(file, keys=keys.path, complete_ms=max(file.modified_ms, keys.modified_ms))


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
