"""The folder or bucket that files of events lie in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, BinaryIO

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore
from obstore.store import S3Store as Bucket

from airflow_cdc_provider.connectors.transports.files.local_files import UNREAD, open_file, refuse_links
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed, Problem, SourceUnavailable
from airflow_cdc_provider.core.storage.locations import ALLOWED, FOLDER, S3, parse_location
from airflow_cdc_provider.core.storage.s3 import s3_access

if TYPE_CHECKING:
    from obstore import GetResult
    from obstore.store import ClientConfig, RetryConfig, S3Config, S3Credential

ID_BYTES = 8
PIECE_BYTES = 1 << 20
RETRIES: RetryConfig = {"max_retries": 5, "retry_timeout": timedelta(seconds=30)}


@dataclass(frozen=True)
class File:
    """``path`` below the location. ``tag``: what changes with the content, as the store says it."""

    path: str
    size: int
    modified_ms: int
    tag: str

    @cached_property
    def id(self) -> bytes:
        """Another content is another file."""
        return blake2b(f"{self.path}\n{self.size}\n{self.tag}".encode(), digest_size=ID_BYTES).digest()


class Folder:
    """Touches nothing until asked. Raises SourceUnavailable (SRC074) where the store does not answer, CheckFailed
    (SRC079) where a folder holds links."""

    def __init__(self, location: str, connection: ConnectionInfo) -> None:
        self.location = location.rstrip("/")
        self._connection = connection
        place = parse_location(self.location)
        self._local = place.path if place.scheme == FOLDER else ""

    @cached_property
    def _store(self) -> LocalStore | Bucket:
        place = parse_location(self.location)
        if place.scheme == FOLDER:
            return LocalStore(place.path)
        if place.scheme == S3:
            return _bucket(self.location, self._connection)
        raise CheckFailed(
            Problem("SRC075", "no files are read from there", self.location, found=place.scheme, allowed=ALLOWED)
        )

    def files(self) -> list[File]:
        with self._guarded(""):
            if self._local:
                refuse_links(self._local)
            return [
                File(meta["path"], meta["size"], round(meta["last_modified"].timestamp() * 1000), meta["e_tag"] or "")
                for chunk in obstore.list(self._store)
                for meta in chunk
                if not any(step.startswith(UNREAD) for step in meta["path"].split("/"))
            ]

    def pieces(self, path: str) -> Iterator[bytes] | None:
        """The file, piece by piece, as it is now; None where there is none any more."""
        with self._guarded(path):
            try:
                if self._local:
                    return self._read(path, open_file(self._local, path))
                found = obstore.get(self._store, path)
            except FileNotFoundError:
                return None
        return self._streamed(path, found)

    def _read(self, path: str, file: BinaryIO) -> Iterator[bytes]:
        with self._guarded(path), file:
            yield from iter(partial(file.read, PIECE_BYTES), b"")

    def _streamed(self, path: str, found: GetResult) -> Iterator[bytes]:
        with self._guarded(path):
            yield from map(bytes, found.stream(PIECE_BYTES))

    @contextmanager
    def _guarded(self, path: str) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            raise SourceUnavailable(
                Problem(
                    "SRC074",
                    "the place of the files cannot be read",
                    where=f"{self.location}/{path}",
                    found=str(error).splitlines()[0][:300],
                    do="see to the folder or bucket, and to our right to list and read it; the next run goes on",
                    data="nothing was read beyond the last sealed window",
                )
            ) from error


def _bucket(location: str, connection: ConnectionInfo) -> Bucket:
    place, access = parse_location(location), s3_access(connection)
    config: S3Config = {}
    if access.endpoint:
        config["endpoint"] = access.endpoint
    if access.region:
        config["region"] = access.region
    client: ClientConfig = {"allow_http": True} if access.uses_plain_http else {}
    credentials: S3Credential = {
        "access_key_id": access.key,
        "secret_access_key": access.secret,
        "token": access.token or None,
        "expires_at": None,
    }
    return Bucket(
        place.bucket,
        prefix=place.path or None,
        config=config,
        client_options=client,
        retry_config=RETRIES,
        credential_provider=(lambda: credentials) if access.key else None,
    )
