"""Uploads through the JSON API: in one request with the metadata, or resumable in parts."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

from airflow_cdc_provider.sandbox.gcs import json_api
from airflow_cdc_provider.sandbox.gcs.checksums import crc32c
from airflow_cdc_provider.sandbox.gcs.messages import Request, Response
from airflow_cdc_provider.sandbox.gcs.objects import Buckets, NotFound, PreconditionFailed

CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)")
RESUME = 308


@dataclass(frozen=True)
class Session:
    """A resumable upload. The precondition counts when the object is created, at the last part."""

    bucket: str
    name: str
    content_type: str
    metadata: dict[str, str]
    if_generation: int | None


class Uploads:
    def __init__(self, buckets: Buckets) -> None:
        self._buckets = buckets
        self._sessions: dict[str, Session] = {}
        self._finished: dict[str, Response] = {}
        self._one_part_at_a_time = threading.Lock()

    def answer(self, request: Request, bucket: str) -> Response:
        """``POST`` or ``PUT /upload/storage/v1/b/<bucket>/o``."""
        try:
            if "upload_id" in request.query:
                with self._one_part_at_a_time:
                    return self._part(request, request.query["upload_id"])
            if request.query.get("uploadType") == "resumable":
                return self._begin(request, bucket)
            given, content = _related(request)
            session = _session(request, bucket, given)
            return self._create(session, content)
        except NotFound as error:
            return json_api.failed(404, "notFound", str(error))
        except PreconditionFailed:
            return json_api.failed(
                412, "conditionNotMet", "At least one of the pre-conditions you specified did not hold."
            )

    def _begin(self, request: Request, bucket: str) -> Response:
        session = _session(request, bucket, json.loads(request.body or b"{}"))
        self._buckets.require_bucket(bucket)
        self._buckets.require_generation(bucket, session.name, session.if_generation)
        upload = self._buckets.begin()
        self._sessions[upload] = session
        return Response(
            200, b"", {"Location": json_api.session_url(request, bucket, upload), "X-GUploader-UploadID": upload}
        )

    def _part(self, request: Request, upload: str) -> Response:
        """A finished upload gives the same answer again: the client may not have received it."""
        if upload in self._finished:
            return self._finished[upload]
        if upload not in self._sessions:
            raise NotFound("NoSuchUpload")
        match = CONTENT_RANGE.fullmatch(request.headers.get("content-range", f"bytes 0-{len(request.body) - 1}/*"))
        first, total = (match[1], match[3]) if match else (None, "*")
        if first is not None:
            self._buckets.put_part(upload, int(first), request.body)
        content = b"".join(part for _, part in sorted(self._buckets.parts(upload).items()))
        is_last = "content-range" not in request.headers or (total != "*" and len(content) >= int(total))
        if not is_last:
            return Response(RESUME, b"", {"Range": f"bytes=0-{len(content) - 1}"} if content else {})
        self._finished[upload] = self._create(self._sessions.pop(upload), content)
        self._buckets.end(upload)
        return self._finished[upload]

    def _create(self, session: Session, content: bytes) -> Response:
        stored = self._buckets.put(
            session.bucket, session.name, content, session.content_type, session.metadata, session.if_generation
        )
        return json_api.body({**json_api.resource(session.bucket, stored), "crc32c": crc32c(content)})


def _session(request: Request, bucket: str, given: dict[str, Any]) -> Session:
    name = given.get("name") or request.query["name"]
    kind = given.get("contentType") or request.headers.get("x-upload-content-type") or "application/octet-stream"
    return Session(bucket, name, kind, given.get("metadata", {}), json_api.if_generation(request))


def _related(request: Request) -> tuple[dict[str, Any], bytes]:
    """Metadata and content of a ``multipart/related`` body; of another body only the content."""
    kind = request.headers.get("content-type", "")
    if not kind.startswith("multipart/related"):
        return {"contentType": kind}, request.body
    boundary = re.search(r'boundary="?([^";]+)', kind)
    assert boundary is not None
    _, metadata, content, _ = re.split(rb"(?:\r?\n)?--" + re.escape(boundary[1].encode()), request.body, maxsplit=3)
    given = json.loads(metadata.split(b"\r\n\r\n", 1)[1])
    head, _, data = content.partition(b"\r\n\r\n")
    headers = BytesParser(policy=HTTP).parsebytes(head.lstrip() + b"\r\n\r\n", headersonly=True)
    return {"contentType": headers.get("Content-Type", ""), **given}, data
