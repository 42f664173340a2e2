"""The folder or bucket that contains the event files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, BinaryIO

import obstore
from obstore.exceptions import BaseError

from airflow_cdc_provider.connectors.transports.files.local_files import (
    IGNORED_PREFIXES,
    LocalFile,
    local_files,
    open_file,
)
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed, Problem, SourceUnavailable
from airflow_cdc_provider.core.storage.locations import ALLOWED, FOLDER, parse_location
from airflow_cdc_provider.core.storage.stores import STORES, store_arguments, store_tls_warnings

if TYPE_CHECKING:
    from obstore import GetResult, ObjectMeta

ID_BYTES = 8
CHUNK_BYTES = 1 << 20
PAGE_FILES = 1000
UNFIT_NAME = "object with invalid path"
"""In the library's message."""
IGNORED = re.compile(f"/[{''.join(IGNORED_PREFIXES)}]")
"""A part of a path that begins with a slash has an ignored prefix."""


@dataclass(frozen=True)
class File:
    """``path``: relative to the location. ``tag`` changes with the content: the store's ETag, or the time of the last
    modification in nanoseconds. ``keys``: the path
    of a file with the keys of its messages; empty if there is none. ``complete_ms``: when the last of both was
    modified; 0 if there is only one. ``awaits_keys``: it has no file of keys, but other files of its folder have.
    ``former_tag``: the tag in positions that were written before, empty for files of a bucket."""

    path: str
    size: int
    modified_ms: int
    tag: str
    keys: str = ""
    complete_ms: int = 0
    awaits_keys: bool = False
    former_tag: str = ""

    @cached_property
    def id(self) -> bytes:
        """Differs when the content differs."""
        return self._id(self.tag)

    def is_in(self, ids: frozenset[bytes]) -> bool:
        return self.id in ids or (bool(self.former_tag) and self._id(self.former_tag) in ids)

    def _id(self, tag: str) -> bytes:
        return blake2b(f"{self.path}\n{self.size}\n{tag}".encode(), digest_size=ID_BYTES).digest()


def _object(meta: ObjectMeta) -> File:
    modified_ms = round(meta["last_modified"].timestamp() * 1000)
    return File(meta["path"], meta["size"], modified_ms, meta["e_tag"] or "")


def _local_file(file: LocalFile) -> File:
    former = f'"{file.inode:x}-{file.modified_ns // 1000:x}-{file.size:x}"'
    modified_ms = round(file.modified_ns / 1_000_000)
    return File(file.path, file.size, modified_ms, str(file.modified_ns), former_tag=former)


class Folder:
    """Does no I/O on construction. Raises SourceUnavailable (SRC074) if the store cannot be read, CheckFailed (SRC079)
    if a folder contains links, or names that cannot be read."""

    def __init__(self, location: str, connection: ConnectionInfo) -> None:
        self.location = location.rstrip("/")
        self._connection = connection
        parsed = parse_location(self.location)
        self._local = parsed.path if parsed.scheme == FOLDER else ""

    @cached_property
    def _store(self) -> obstore.store.ObjectStore:
        parsed = parse_location(self.location)
        if parsed.scheme in STORES:
            name, arguments = store_arguments(parsed, self._connection, os.environ)
            bucket: obstore.store.ObjectStore = getattr(obstore.store, name)(**arguments)
            return bucket
        what = "files cannot be read from this kind of location"
        raise CheckFailed.of("SRC075", what, self.location, found=parsed.scheme, allowed=ALLOWED)

    def tls_warnings(self) -> list[Problem]:
        return store_tls_warnings(self.location, self._connection)

    def files(self) -> Iterator[File]:
        """In the order of the store, which is read in pages. An empty file has no change; in a bucket it may mark a
        folder, and its name is another one."""
        with self._translated_errors(""):
            found = map(_local_file, local_files(self._local)) if self._local else self._objects()
            yield from (file for file in found if file.size)

    def _objects(self) -> Iterator[File]:
        for page in obstore.list(self._store, chunk_size=PAGE_FILES):
            yield from (_object(meta) for meta in page if not IGNORED.search(f"/{meta['path']}"))

    def read_chunks(self, path: str) -> Iterator[bytes] | None:
        """The current content of the file; None if it does not exist any more."""
        with self._translated_errors(path):
            try:
                if self._local:
                    return self._local_chunks(path, open_file(self._local, path))
                response = obstore.get(self._store, path)
            except FileNotFoundError:
                return None
        return self._bucket_chunks(path, response)

    def _local_chunks(self, path: str, file: BinaryIO) -> Iterator[bytes]:
        with self._translated_errors(path), file:
            yield from iter(partial(file.read, CHUNK_BYTES), b"")

    def _bucket_chunks(self, path: str, response: GetResult) -> Iterator[bytes]:
        with self._translated_errors(path):
            yield from map(bytes, response.stream(CHUNK_BYTES))

    @contextmanager
    def _translated_errors(self, path: str) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            found = str(error).splitlines()[0][:300]
            raise (self._unfit_name(found) if UNFIT_NAME in found else self._failed(path, found)) from error

    def _failed(self, path: str, found: str) -> SourceUnavailable:
        return SourceUnavailable.of(
            "SRC074",
            "the folder or bucket of the files cannot be read",
            where=f"{self.location}/{path}",
            found=found,
            do="check that it exists and that the connection may list and read it; the next run continues",
            data="nothing was read after the last sealed window",
        )

    def _unfit_name(self, found: str) -> CheckFailed:
        return CheckFailed.of(
            "SRC079",
            "the bucket of the files has an object whose name cannot be read",
            where=self.location,
            found=found,
            allowed="names without empty parts, `.` and `..` between slashes, and without control characters",
            do="rename or remove the object",
            data="nothing was read after the last sealed window",
        )
