"""The files of a window, and their distribution over tasks. Pure.

The limit of a window lists the planned files beside the position, so that a planned file that is missing when the
window is read leaves a hole. A planned file that was rewritten in between is read in a later window.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from airflow_cdc_provider.connectors.source import SourceStatus, StreamSplit
from airflow_cdc_provider.connectors.transports.files.companions import awaits_keys
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
    position: Position, listed: Sequence[File], now_ms: int, stable_ms: int, lateness_ms: int
) -> SourceStatus:
    """The window reads the oldest new files, up to its maximum size. Files wait for their keys as long as files may be
    late."""
    start = folder_position(position)
    incomplete = awaits_keys(listed)
    stable = (file for file in listed if max(file.modified_ms, file.complete_ms) <= now_ms - stable_ms)
    complete = (f for f in stable if f.path not in incomplete or f.modified_ms <= now_ms - lateness_ms)
    new = sorted(filter(start.is_unread, complete), key=lambda file: (file.modified_ms, file.path))
    files = _first_of_window(new)
    if not files:
        return SourceStatus(False, position)
    limit = position_of(start.after(files, listed, lateness_ms))
    return SourceStatus(True, {**limit, PLANNED: " ".join(sorted(_path_hash(file) for file in files))})


def split_window(lo: Position, limit: Position, listed: Iterable[File]) -> list[StreamSplit]:
    """Files in order of time, several per split. The first split reports missing files."""
    start, end = folder_position(lo), folder_position(limit)
    listed = list(listed)
    missing = set(limit.get(PLANNED, "").split()) - {_path_hash(file) for file in listed}
    files = sorted(
        (
            file
            for file in listed
            if start.is_unread(file) and (file.modified_ms <= end.horizon_ms or file.id in end.read)
        ),
        key=lambda file: (file.modified_ms, file.path),
    )
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
