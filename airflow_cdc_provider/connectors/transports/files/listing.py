"""The files of a folder, listed as often as it is iterated, but only once if they are few."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from airflow_cdc_provider.connectors.transports.files.folder import File

MAX_CACHED_FILES = 50_000
"""About 25 MB."""


class Listing:
    def __init__(self, files: Callable[[], Iterable[File]]) -> None:
        self._list = files
        self._cached: list[File] | None = None

    def __iter__(self) -> Iterator[File]:
        if self._cached is not None:
            yield from self._cached
            return
        files: list[File] | None = []
        for file in self._list():
            if files is not None:
                files.append(file)
                files = files if len(files) <= MAX_CACHED_FILES else None
            yield file
        self._cached = files
