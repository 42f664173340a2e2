"""Which files are looked into to find out what tables there are. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from airflow_cdc_provider.connectors.files.folder import File
from airflow_cdc_provider.connectors.formats.message import Message

MOST_FILES = 200


def heads_of(listed: Sequence[File], head: Callable[[File], Sequence[Message]]) -> Iterator[Message]:
    """The first messages of the oldest file of each top folder, and of the newest one: writers keep tables apart by
    folders where they keep them apart at all."""
    tops: dict[str, list[File]] = {}
    for file in sorted(listed, key=lambda file: (file.modified_ms, file.path)):
        tops.setdefault(file.path.rpartition("/")[0].partition("/")[0], []).append(file)
    chosen = dict.fromkeys(file for files in tops.values() for file in (files[0], files[-1]))
    for file in list(chosen)[:MOST_FILES]:
        yield from head(file)
