"""Buckets, objects and their generations. Every method is atomic."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from base64 import b64encode
from bisect import bisect_left, insort
from dataclasses import dataclass, field
from datetime import UTC, datetime

PAGE = 1000
NO_OBJECT = 0
"""The generation of an object that does not exist."""


class NotFound(Exception):
    """The argument is ``NoSuchBucket``, ``NoSuchKey`` or ``NoSuchUpload``."""


class PreconditionFailed(Exception):
    """The object has another generation."""


@dataclass(frozen=True)
class Stored:
    name: str
    content: bytes = field(repr=False)
    generation: int
    content_type: str
    metadata: dict[str, str]
    updated: datetime

    @property
    def md5(self) -> bytes:
        return hashlib.md5(self.content, usedforsecurity=False).digest()

    @property
    def etag(self) -> str:
        return b64encode(self.generation.to_bytes(8, "big")).decode()


@dataclass(frozen=True)
class Page:
    objects: list[Stored]
    prefixes: list[str]
    next_after: str


class Buckets:
    def __init__(self, names: list[str]) -> None:
        self._lock = threading.RLock()
        self._buckets: dict[str, dict[str, Stored]] = {name: {} for name in names}
        self._sorted: dict[str, list[str]] = {name: [] for name in names}
        self._generation = 0
        self._uploads: dict[str, dict[int, bytes]] = {}

    def require_bucket(self, bucket: str) -> None:
        if bucket not in self._buckets:
            raise NotFound("NoSuchBucket")

    def get(self, bucket: str, name: str, generation: int | None = None) -> Stored:
        """``generation``: only if the object has this one; otherwise it is not found, as no version is kept."""
        self.require_bucket(bucket)
        with self._lock:
            stored = self._buckets[bucket].get(name)
            if stored is None or generation not in (None, stored.generation):
                raise NotFound("NoSuchKey")
            return stored

    def put(
        self,
        bucket: str,
        name: str,
        content: bytes,
        content_type: str = "application/octet-stream",
        metadata: dict[str, str] | None = None,
        if_generation: int | None = None,
    ) -> Stored:
        """``if_generation``: only if the object has this generation, 0 if it does not exist."""
        self.require_bucket(bucket)
        with self._lock:
            self.require_generation(bucket, name, if_generation)
            # As in Cloud Storage: microseconds, growing.
            self._generation = max(self._generation + 1, time.time_ns() // 1000)
            stored = Stored(name, content, self._generation, content_type, metadata or {}, datetime.now(UTC))
            if name not in self._buckets[bucket]:
                insort(self._sorted[bucket], name)
            self._buckets[bucket][name] = stored
            return stored

    def delete(self, bucket: str, name: str, if_generation: int | None = None) -> None:
        with self._lock:
            self.get(bucket, name)
            self.require_generation(bucket, name, if_generation)
            del self._buckets[bucket][name]
            names = self._sorted[bucket]
            del names[bisect_left(names, name)]

    def move(self, bucket: str, name: str, to_name: str, if_generation: int | None = None) -> Stored:
        """``if_generation``: of the object with the new name."""
        with self._lock:
            source = self.get(bucket, name)
            moved = self.put(bucket, to_name, source.content, source.content_type, source.metadata, if_generation)
            self.delete(bucket, name)
            return moved

    def require_generation(self, bucket: str, name: str, expected: int | None) -> None:
        if expected is None:
            return
        with self._lock:
            stored = self._buckets[bucket].get(name)
            if (stored.generation if stored else NO_OBJECT) != expected:
                raise PreconditionFailed

    def page(self, bucket: str, prefix: str, delimiter: str, after: str, limit: int, start: str = "") -> Page:
        """Objects and prefixes in the order of their names, together at most ``limit``. ``after``: the last name or
        prefix of the page before. ``start``: the first name that may be returned."""
        self.require_bucket(bucket)
        objects: list[Stored] = []
        prefixes: list[str] = []
        with self._lock:
            names = self._sorted[bucket]
            at = max(bisect_left(names, prefix), bisect_left(names, start))
            if after:
                ends = f"{after}\U0010ffff" if delimiter and after.endswith(delimiter) else f"{after}\0"
                at = max(at, bisect_left(names, ends))
            while at < len(names) and names[at].startswith(prefix):
                if len(objects) + len(prefixes) >= limit:
                    last = max([stored.name for stored in objects[-1:]] + prefixes[-1:])
                    return Page(objects, prefixes, last)
                folder, found, _ = names[at][len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
                if found:
                    prefixes.append(f"{prefix}{folder}{delimiter}")
                    at = bisect_left(names, f"{prefixes[-1]}\U0010ffff", at)
                else:
                    objects.append(self._buckets[bucket][names[at]])
                    at += 1
        return Page(objects, prefixes, "")

    # Uploads in parts

    def begin(self) -> str:
        upload = secrets.token_hex(16)
        with self._lock:
            self._uploads[upload] = {}
        return upload

    def put_part(self, upload: str, number: int, content: bytes) -> None:
        with self._lock:
            self._parts(upload)[number] = content

    def parts(self, upload: str) -> dict[int, bytes]:
        with self._lock:
            return dict(self._parts(upload))

    def end(self, upload: str) -> None:
        with self._lock:
            self._parts(upload)
            del self._uploads[upload]

    def _parts(self, upload: str) -> dict[int, bytes]:
        if upload not in self._uploads:
            raise NotFound("NoSuchUpload")
        return self._uploads[upload]
