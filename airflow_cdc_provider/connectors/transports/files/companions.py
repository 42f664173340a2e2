"""Keys in files of their own, as sinks of Kafka Connect write them beside the files of the values. Pure.

    orders+0+0000000000.avro            values
    orders+0+0000000000.keys.avro       keys of the same messages, in the same order
    orders+0+0000000000.headers.avro    headers

Values are written first. Where other files of a folder have keys, a file without keys waits for them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain

import numpy

from airflow_cdc_provider.connectors.decoders.common.dead_letters import CONTRADICTION
from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.transports.files.folder import File

KEYS = "keys"
PARTS = frozenset({KEYS, "headers"})
EXTENSIONS = frozenset({"avro", "bin", "brotli", "gz", "gzip", "json", "jsonl", "lz4", "parquet", "snappy", "zstd"})
UNEQUAL = f"{CONTRADICTION} the file of keys and the file of values have different numbers of messages"


Choose = Callable[[Iterable[File]], list[File]]


def choose_with_keys(listed: Iterable[File], choose: Choose) -> list[File]:
    """The files that ``choose`` chooses, each with its file of keys. It gets no files of keys and headers, except those
    without a file of values, and is called again with what it has chosen. ``listed`` is iterated again if the folder
    has such files; eight bytes per file are kept in memory."""
    companions = _Companions()
    chosen = choose(companions.without(listed))
    if not companions.parts:
        return chosen
    chosen = choose(chain(chosen, companions.single(listed)))
    return companions.join(chosen, listed) if chosen else []


class _Companions:
    """``values``, ``parts``: hashes of the names of files of values, and of keys or headers, without their endings."""

    def __init__(self) -> None:
        self.values = array("q")
        self.parts = array("q")

    def without(self, listed: Iterable[File]) -> Iterator[File]:
        for file in listed:
            stem, part = _split(file.path)
            if part:
                self.parts.append(hash(stem))
            else:
                self.values.append(hash(stem))
                yield file

    def single(self, listed: Iterable[File]) -> Iterator[File]:
        """Files of keys and headers without a file of values."""
        if not self._single:
            return
        for file in listed:
            stem, part = _split(file.path)
            if part and hash(stem) in self._single:
                yield file

    @cached_property
    def _single(self) -> frozenset[int]:
        return frozenset(numpy.setdiff1d(self.parts, self.values).tolist())

    def join(self, files: Sequence[File], listed: Iterable[File]) -> list[File]:
        stems, folders = {_split(file.path)[0] for file in files}, {_folder(file.path) for file in files}
        keys: dict[str, File] = {}
        with_keys: set[str] = set()
        for file in listed:
            stem, part = _split(file.path)
            if part == KEYS and _folder(file.path) in folders and hash(stem) not in self._single:
                with_keys.add(_folder(file.path))
                if stem in stems:
                    keys[stem] = file
        return [_with_keys(file, keys.get(_split(file.path)[0]), _folder(file.path) in with_keys) for file in files]


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


def _with_keys(file: File, keys: File | None, others_have: bool) -> File:
    if keys is None or keys.path == file.path:
        return replace(file, awaits_keys=others_have)
    return replace(file, keys=keys.path, complete_ms=max(file.modified_ms, keys.modified_ms))


def _split(path: str) -> tuple[str, str]:
    """The path without its endings, and the part: empty, ``keys`` or ``headers``. A path without one of the extensions
    is returned as it is. No regular expression: a folder may have a million files."""
    name = path
    stem, _, ending = path.rpartition(".")
    while stem and ending in EXTENSIONS:
        name = stem
        stem, _, ending = stem.rpartition(".")
    return (stem, ending) if stem and ending in PARTS and name != path else (name, "")


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
