"""Batches of the JSON API: several requests as parts of one."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qsl, unquote, urlsplit

from airflow_cdc_provider.sandbox.gcs.messages import Request, Response

BOUNDARY = "batch_of_the_stand_in"


def answer(request: Request, one: Callable[[Request], Response]) -> Response:
    """``one`` answers a request whose path begins with ``storage/v1``."""
    match = re.search(r'boundary="?([^";]+)', request.headers.get("content-type", ""))
    assert match is not None
    parts = re.split(rb"(?:\r?\n)?--" + re.escape(match[1].encode()) + rb"(?:--)?\r?\n?", request.body)
    answers = b"".join(_answered(part, request, one) for part in parts if part.strip())
    content = answers + f"--{BOUNDARY}--\r\n".encode()
    return Response(200, content, {"Content-Type": f"multipart/mixed; boundary={BOUNDARY}"})


def _answered(part: bytes, batch: Request, one: Callable[[Request], Response]) -> bytes:
    outer, inner = re.split(rb"\r?\n\r?\n", part, maxsplit=1)
    head, _, content = inner.replace(b"\r\n", b"\n").partition(b"\n\n")
    line, *fields = head.decode().strip().split("\n")
    method, url, *_ = line.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
    address = urlsplit(url)
    path = tuple(unquote(segment) for segment in address.path.strip("/").split("/"))
    response = one(Request(method, path, dict(parse_qsl(address.query)), headers, content.strip(), batch.root))
    identifier = re.search(rb"(?i)content-id:\s*<?([^>\r\n]+)", outer)
    lines = [f"--{BOUNDARY}", "Content-Type: application/http"]
    if identifier:
        lines.append(f"Content-ID: <response-{identifier[1].decode()}>")
    lines += ["", f"HTTP/1.1 {response.status} Status"]
    lines += [f"{name}: {value}" for name, value in response.headers.items()]
    lines += [f"Content-Length: {len(response.body)}", "", ""]
    return "\r\n".join(lines).encode() + response.body + b"\r\n"
