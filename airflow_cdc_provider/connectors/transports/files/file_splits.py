"""Which files a window reads, and who reads which. Pure.

The end of a window is fixed by its place alone. A file that was planned and is gone when it is to be read leaves a
hole; so the limit names the planned ones. One that was written anew meanwhile is read when it is left alone again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from airflow_cdc_provider.connectors.source import SourceStatus, StreamSplit
from airflow_cdc_provider.connectors.transports.files.folder import ID_BYTES, File
from airflow_cdc_provider.connectors.transports.files.positions import folder_position, position_of
from airflow_cdc_provider.core.log.positions import Position

WINDOW_BYTES = 2 << 30
WINDOW_FILES = 5_000
SHARE_BYTES = 32 << 20
"""Files are put together up to this size for one task; a task per file would spend its time on beginning."""
MOST_SHARES = 64
PLANNED = "planned"


def read_status(
    position: Position, listed: Sequence[File], now_ms: int, stable_ms: int, lateness_ms: int
) -> SourceStatus:
    """Oldest first, and so many of them as a window holds."""
    place = folder_position(position)
    new = sorted(
        (file for file in listed if place.lacks(file) and file.modified_ms <= now_ms - stable_ms),
        key=lambda file: (file.modified_ms, file.path),
    )
    chosen = _first(new)
    if not chosen:
        return SourceStatus(False, position)
    limit = position_of(place.behind(chosen, listed, lateness_ms))
    return SourceStatus(True, {**limit, PLANNED: " ".join(sorted(_name(file) for file in chosen))})


def splits_of(lo: Position, limit: Position, listed: Iterable[File]) -> list[StreamSplit]:
    """Files in order of time, several to a task. What is gone is told by the first task."""
    start, end = folder_position(lo), folder_position(limit)
    listed = list(listed)
    gone = set(limit.get(PLANNED, "").split()) - {_name(file) for file in listed}
    files = sorted(
        (file for file in listed if start.lacks(file) and (file.modified_ms <= end.horizon_ms or file.id in end.read)),
        key=lambda file: (file.modified_ms, file.path),
    )
    reached = position_of(end)
    told = [[file.path, file.size, file.modified_ms, file.tag] for file in files]
    size = max(SHARE_BYTES, sum(file.size for file in files) // MOST_SHARES)
    shares: list[list[object]] = [[]]
    held = 0
    for file, one in zip(files, told, strict=True):
        if shares[-1] and held + file.size > size:
            shares.append([])
            held = 0
        shares[-1].append(one)
        held += file.size
    bodies = [{"files": json.dumps(share)} for share in shares]
    if gone:
        bodies[0]["gone"] = str(len(gone))
    return [StreamSplit(lo, reached, body) for body in bodies]


def _name(file: File) -> str:
    return blake2b(file.path.encode(), digest_size=ID_BYTES).hexdigest()


def _first(files: Sequence[File]) -> list[File]:
    chosen: list[File] = []
    held = 0
    for file in files:
        if chosen and (held + file.size > WINDOW_BYTES or len(chosen) >= WINDOW_FILES):
            break
        chosen.append(file)
        held += file.size
    return chosen


def files_of(partition: StreamSplit) -> list[File]:
    return [File(*one) for one in json.loads(partition.body["files"])]
