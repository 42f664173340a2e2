"""Which files are looked into to find out what tables there are. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from airflow_cdc_provider.connectors.transports.files.folder import File

MOST_KINDS = 1000
_HEX = "[0-9a-fA-F]"
_COUNTING = rf"(?:{_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}}|{_HEX}{{16,}}|\d{{8}}T\d+Z?|\d+)"
"""What tells a file from others of the same kind: UUIDs, hashes, times, numbers."""
IN_FOLDERS = re.compile(rf"(?<!\w){_COUNTING}(?!\w)")
"""A number behind ``_`` is part of a table's name there."""
IN_NAMES = re.compile(rf"(?<![0-9A-Za-z]){_COUNTING}(?![0-9A-Za-z])")


def sampled_files(listed: Sequence[File]) -> list[File]:
    """The oldest and the newest file of each kind: writers that keep tables apart do so by the names of folders or
    files. Where there are very many kinds, of those that were written to last."""
    kinds: dict[tuple[str, str], list[File]] = {}
    for file in sorted(listed, key=lambda file: (file.modified_ms, file.path)):
        kinds.setdefault(_kind(file.path), []).append(file)
    written_last = sorted(kinds.values(), key=lambda files: files[-1].modified_ms)[-MOST_KINDS:]
    chosen = {file for files in written_last for file in (files[0], files[-1])}
    return sorted(chosen, key=lambda file: (file.modified_ms, file.path))


def _kind(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return IN_FOLDERS.sub("", folder), IN_NAMES.sub("", name)
