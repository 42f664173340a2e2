"""The files of a window, and their distribution over tasks. Pure.

The limit of a window lists the planned files beside the position, so that a planned file that is missing when the
window is read leaves a hole. A planned file that was rewritten in between is read in a later window.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

from airflow_cdc_provider.connectors.source import SourceStatus, StreamSplit
from airflow_cdc_provider.connectors.transports.files.companions import choose_with_keys
from airflow_cdc_provider.connectors.transports.files.folder import ID_BYTES, File
from airflow_cdc_provider.connectors.transports.files.positions import folder_position, position_of
from airflow_cdc_provider.core.log.positions import Position

WINDOW_BYTES = 2 << 30
WINDOW_FILES = 5_000
SPLIT_BYTES = 32 << 20
"""One task reads several files up to this size: with one file per task, most of the time is startup."""
MAX_SPLITS = 64
PLANNED = "planned"


def read_status(
    position: Position, listed: Iterable[File], now_ms: int, stable_ms: int, lateness_ms: int
) -> SourceStatus:
    """The window reads the oldest new files, up to its maximum size. Files wait for their keys as long as files may be
    late. Keeps no more files in memory than a window, and those that the position names."""
    start = folder_position(position)
    read: list[File] = []

    def unread(files: Iterable[File]) -> Iterator[File]:
        for file in files:
            if file.modified_ms <= start.horizon_ms:
                continue
            if not start.is_unread(file):
                read.append(file)
            elif file.modified_ms <= now_ms - stable_ms:
                yield file

    def is_complete(file: File) -> bool:
        late = file.modified_ms <= now_ms - lateness_ms
        return file.complete_ms <= now_ms - stable_ms and (late or not file.awaits_keys)

    oldest = choose_with_keys(listed, lambda files: heapq.nsmallest(WINDOW_FILES, unread(files), key=_age))
    files = _first_of_window(list(filter(is_complete, oldest)))
    if not files:
        return SourceStatus(False, position)
    limit = position_of(start.after(files, read, lateness_ms))
    return SourceStatus(True, {**limit, PLANNED: " ".join(sorted(_path_hash(file) for file in files))})


def split_window(lo: Position, limit: Position, listed: Iterable[File]) -> list[StreamSplit]:
    """Files in order of time, several per split. The first split reports missing files."""
    start, end = folder_position(lo), folder_position(limit)
    missing = set(limit.get(PLANNED, "").split())

    def of_window(files: Iterable[File]) -> list[File]:
        found = []
        for file in files:
            if missing:
                missing.discard(_path_hash(file))
            if start.is_unread(file) and (file.modified_ms <= end.horizon_ms or file.is_in(end.read)):
                found.append(file)
        return sorted(found, key=_age)

    files = choose_with_keys(listed, of_window)
    max_bytes = max(SPLIT_BYTES, sum(file.size for file in files) // MAX_SPLITS)
    splits: list[list[object]] = [[]]
    size = 0
    for file in files:
        if splits[-1] and size + file.size > max_bytes:
            splits.append([])
            size = 0
        splits[-1].append([file.path, file.size, file.modified_ms, file.tag, file.keys])
        size += file.size
    bodies = [{"files": json.dumps(split)} for split in splits]
    if missing:
        bodies[0]["gone"] = str(len(missing))
    end_position = position_of(end)
    return [StreamSplit(lo, end_position, body) for body in bodies]


def _age(file: File) -> tuple[int, str]:
    """Sorts files from the oldest to the newest."""
    return file.modified_ms, file.path


def _path_hash(file: File) -> str:
    return blake2b(file.path.encode(), digest_size=ID_BYTES).hexdigest()


def _first_of_window(files: Sequence[File]) -> list[File]:
    first: list[File] = []
    size = 0
    for file in files:
        if first and (size + file.size > WINDOW_BYTES or len(first) >= WINDOW_FILES):
            break
        first.append(file)
        size += file.size
    return first


def files_of(split: StreamSplit) -> list[File]:
    return [File(*fields) for fields in json.loads(split.body["files"])]
