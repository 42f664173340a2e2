"""Selects the files that are read to discover tables. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from airflow_cdc_provider.connectors.transports.files.folder import File

MAX_KINDS = 1000
_HEX = "[0-9a-fA-F]"
_COUNTING = rf"(?:{_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}}|{_HEX}{{16,}}|\d{{8}}T\d+Z?|\d+)"
"""The varying parts in the names of files of one kind: UUIDs, hashes, times, numbers."""
IN_FOLDERS = re.compile(rf"(?<!\w){_COUNTING}(?!\w)")
"""In folder names a number after ``_`` is part of a table name."""
IN_NAMES = re.compile(rf"(?<![0-9A-Za-z]){_COUNTING}(?![0-9A-Za-z])")


def sample_files(listed: Sequence[File]) -> list[File]:
    """The oldest and the newest file of each kind: a writer that separates tables does so by folder or file name. At
    most ``MAX_KINDS`` kinds, those with the newest files."""
    kinds: dict[tuple[str, str], list[File]] = {}
    for file in sorted(listed, key=lambda file: (file.modified_ms, file.path)):
        kinds.setdefault(_kind(file.path), []).append(file)
    latest = sorted(kinds.values(), key=lambda files: files[-1].modified_ms)[-MAX_KINDS:]
    sample = {file for files in latest for file in (files[0], files[-1])}
    return sorted(sample, key=lambda file: (file.modified_ms, file.path))


def _kind(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return IN_FOLDERS.sub("", folder), IN_NAMES.sub("", name)
