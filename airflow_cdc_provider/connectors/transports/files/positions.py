"""How far a folder has been read. Pure.

A place is a time and the files changed behind it that were read: everything older was, or came too late to be seen.
Times are the store's own, so a file that is long in coming (an upload counts from its beginning) needs ``lateness``.

    files: <milliseconds since 1970> <ids of files, eight bytes each, sorted, in base64>
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from airflow_cdc_provider.connectors.transports.files.folder import ID_BYTES, File
from airflow_cdc_provider.core.log.positions import Position

CHANNEL = "files"


@dataclass(frozen=True)
class FolderPosition:
    """``horizon_ms``: what was changed up to then is done with. ``read``: ids of what was changed later."""

    horizon_ms: int = -1
    read: frozenset[bytes] = frozenset()

    def lacks(self, file: File) -> bool:
        return file.modified_ms > self.horizon_ms and file.id not in self.read

    def behind(self, files: Sequence[File], listed: Iterable[File], lateness_ms: int) -> FolderPosition:
        """The place where these ``files`` are read, too. They are the oldest of the ``listed`` ones that it lacks."""
        newest = max((file.modified_ms for file in files), default=self.horizon_ms)
        horizon = max(self.horizon_ms, newest - lateness_ms)
        taken = self.read | {file.id for file in files}
        return FolderPosition(horizon, frozenset(f.id for f in listed if f.modified_ms > horizon and f.id in taken))


START = FolderPosition()


def position_of(place: FolderPosition) -> dict[str, str]:
    ids = b64encode(b"".join(sorted(place.read))).decode("ascii")
    return {CHANNEL: f"{place.horizon_ms} {ids}"}


def folder_position(position: Position) -> FolderPosition:
    """The start, where nothing was read of this folder."""
    if CHANNEL not in position:
        return START
    horizon, _, text = position[CHANNEL].partition(" ")
    ids = b64decode(text)
    return FolderPosition(int(horizon), frozenset(ids[at : at + ID_BYTES] for at in range(0, len(ids), ID_BYTES)))
