"""Positions in a folder. Pure.

A position is a time and the read files that were modified later. All older files were read, or appeared too late.
Times are those of the store. ``lateness`` allows for slow uploads, whose time may be that of their start.

    files: <milliseconds since 1970> <ids of files, eight bytes each, sorted, in base64>
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from airflow_cdc_provider.connectors.transports.files.folder import ID_BYTES, File
from airflow_cdc_provider.core.log.positions import Position

CHANNEL = "files"


@dataclass(frozen=True)
class FolderPosition:
    """``horizon_ms``: no file modified up to then will be read. ``read``: ids of the read files modified later."""

    horizon_ms: int = -1
    read: frozenset[bytes] = frozenset()

    def is_unread(self, file: File) -> bool:
        return file.modified_ms > self.horizon_ms and not (self.read and file.is_in(self.read))

    def after(self, files: Sequence[File], read: Iterable[File], lateness_ms: int) -> FolderPosition:
        """The position after reading ``files``, the oldest unread ones. ``read``: the files of this position that still
        exist."""
        newest = max((file.modified_ms for file in files), default=self.horizon_ms)
        horizon = max(self.horizon_ms, newest - lateness_ms)
        return FolderPosition(horizon, frozenset(f.id for f in chain(read, files) if f.modified_ms > horizon))


START = FolderPosition()


def position_of(folder: FolderPosition) -> dict[str, str]:
    ids = b64encode(b"".join(sorted(folder.read))).decode("ascii")
    return {CHANNEL: f"{folder.horizon_ms} {ids}"}


def folder_position(position: Position) -> FolderPosition:
    """START if nothing of this folder was read."""
    if CHANNEL not in position:
        return START
    horizon, _, text = position[CHANNEL].partition(" ")
    ids = b64decode(text)
    return FolderPosition(int(horizon), frozenset(ids[at : at + ID_BYTES] for at in range(0, len(ids), ID_BYTES)))
