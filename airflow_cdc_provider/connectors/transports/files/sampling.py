"""Selects the files that are read to discover tables. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from airflow_cdc_provider.connectors.transports.files.folder import File

Kind = tuple[str, str]
MAX_KINDS = 1000
KEPT_KINDS = 10 * MAX_KINDS
_HEX = "[0-9a-fA-F]"
_COUNTING = rf"(?:{_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}}|{_HEX}{{16,}}|\d{{8}}T\d+Z?|\d+)"
"""The varying parts in the names of files of one kind: UUIDs, hashes, times, numbers."""
IN_FOLDERS = re.compile(rf"(?<!\w){_COUNTING}(?!\w)")
"""In folder names a number after ``_`` is part of a table name."""
IN_NAMES = re.compile(rf"(?<![0-9A-Za-z]){_COUNTING}(?![0-9A-Za-z])")


def sample_files(listed: Iterable[File]) -> list[File]:
    """The oldest and the newest file of each kind: a writer that separates tables does so by folder or file name. At
    most ``MAX_KINDS`` kinds, those with the newest files. No more than ten times as many are kept in memory; of a kind
    that was dropped meanwhile, the files listed before that are not considered."""
    kinds: dict[Kind, tuple[File, File]] = {}
    for file in listed:
        kind = kind_of(file.path)
        oldest, newest = kinds.get(kind, (file, file))
        kinds[kind] = min(oldest, file, key=age_of), max(newest, file, key=age_of)
        if len(kinds) > KEPT_KINDS:
            kinds = _latest(kinds)
    return sorted({file for files in _latest(kinds).values() for file in files}, key=age_of)


def _latest(kinds: dict[Kind, tuple[File, File]]) -> dict[Kind, tuple[File, File]]:
    latest = sorted(kinds.items(), key=lambda item: age_of(item[1][1]))
    return dict(latest[-MAX_KINDS:])


def age_of(file: File) -> tuple[int, str]:
    return file.modified_ms, file.path


def kind_of(path: str) -> Kind:
    folder, _, name = path.rpartition("/")
    return IN_FOLDERS.sub("", folder), IN_NAMES.sub("", name)
