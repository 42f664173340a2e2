"""Requests and responses of both APIs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from airflow_cdc_provider.sandbox.gcs.objects import Stored

RANGE = re.compile(r"bytes=(\d*)-(\d*)")


@dataclass(frozen=True)
class Request:
    """``path`` is split at its slashes before it is decoded; header names are in lower case. ``root``: the server's
    URL."""

    method: str
    path: tuple[str, ...]
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    root: str


@dataclass(frozen=True)
class Response:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


def media(request: Request, stored: Stored) -> Response:
    """The content of an object, or the requested range of it."""
    size = len(stored.content)
    headers = {
        "Content-Type": stored.content_type,
        "ETag": f'"{stored.etag}"',
        "Last-Modified": stored.updated.strftime("%a, %d %b %Y %H:%M:%S GMT"),
        "x-goog-generation": str(stored.generation),
        "x-goog-stored-content-length": str(size),
    }
    match = RANGE.fullmatch(request.headers.get("range", ""))
    if match is None or not any(match.groups()):
        return Response(200, stored.content, headers)
    first, last = match.groups()
    start = int(first) if first else max(size - int(last), 0)
    end = min(int(last) + 1, size) if first and last else size
    if start >= size:
        return Response(416, b"", {"Content-Range": f"bytes */{size}"})
    return Response(206, stored.content[start:end], {**headers, "Content-Range": f"bytes {start}-{end - 1}/{size}"})
