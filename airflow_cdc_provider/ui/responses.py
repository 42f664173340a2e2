"""Answers with an ETag, and the headers and limits of every answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from fastapi import Request, Response

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.ui.problems import problem_response

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache, private",
}
MAX_BODY_BYTES = 64 * 1024
JSON = "application/json"
AGES = frozenset({"lag_s"})
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

Next = Callable[[Request], Awaitable[Response]]


def json_response(request: Request, body: object) -> Response:
    """HTTP 304 without a body if the client has this answer already. The tag is weak: it leaves out what only the time
    has changed."""
    content = json.dumps(body, separators=(",", ":")).encode()
    recorded = json.dumps(_without_ages(body)).encode()
    tag = f'W/"{hashlib.sha256(recorded).hexdigest()[:32]}"'
    if tag in (one.strip() for one in request.headers.get("If-None-Match", "").split(",")):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": tag})
    return Response(content, media_type=JSON, headers={"ETag": tag})


def _without_ages(body: object) -> object:
    if isinstance(body, dict):
        return {name: _without_ages(value) for name, value in body.items() if name not in AGES}
    return [_without_ages(one) for one in body] if isinstance(body, list) else body


async def add_headers_and_bound_bodies(request: Request, call_next: Next) -> Response:
    response = _refusal(request) or await call_next(request)
    response.headers.update({name: value for name, value in HEADERS.items() if name not in response.headers})
    return response


def _refusal(request: Request) -> Response | None:
    if request.method in SAFE:
        return None
    length = request.headers.get("Content-Length", "")
    if not length.isdecimal() or "Transfer-Encoding" in request.headers:
        return _refused(request, HTTPStatus.LENGTH_REQUIRED, "the request has no Content-Length", "")
    if int(length) > MAX_BODY_BYTES:
        status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        return _refused(request, status, "the body is too large", f"{MAX_BODY_BYTES} bytes")
    media_type = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if int(length) and media_type != JSON:
        return _refused(request, HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body has another media type", JSON)
    return None


def _refused(request: Request, status: HTTPStatus, what: str, allowed: str) -> Response:
    return problem_response(request, status, [Problem("", what, allowed=allowed)])
