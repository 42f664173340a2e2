"""HTTP requests and responses, independent of the server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from airflow_cdc_provider.sandbox.salesforce.errors import ApiError

JSON_TYPE = "application/json;charset=UTF-8"
CSV_TYPE = "text/csv; charset=UTF-8"


@dataclass(frozen=True)
class Request:
    """``headers`` by lower-case name; ``query`` holds the last value of each name; ``scheme`` http or https."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""
    scheme: str = "http"

    @property
    def token(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ").removeprefix("OAuth ")

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode()))

    def json(self) -> Any:
        """Raises ApiError JSON_PARSER_ERROR (400)."""
        try:
            return json.loads(self.body or b"{}")
        except ValueError as error:
            raise ApiError(400, "JSON_PARSER_ERROR", f"Unexpected character: {error}") from error

    def fields(self) -> dict[str, Any]:
        """The body, which must be a JSON object."""
        body = self.json()
        if not isinstance(body, dict):
            raise ApiError(400, "JSON_PARSER_ERROR", "Can not deserialize: an object is expected")
        return body

    def number(self, name: str, default: int) -> int:
        text = self.query.get(name, "")
        if not text:
            return default
        if not text.isdigit():
            raise ApiError(400, "INVALID_QUERY_PARAMETER", f"{name} must be a number: {text}")
        return int(text)


@dataclass(frozen=True)
class Response:
    """``cut``: the connection breaks after that many bytes of the body."""

    status: int
    body: bytes = b""
    content_type: str = JSON_TYPE
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None


def json_response(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(status, json.dumps(body, ensure_ascii=False).encode(), headers=headers or {})


def error_response(error: ApiError, headers: Mapping[str, str] | None = None) -> Response:
    """The org's format of an error: a list with one object."""
    body: dict[str, Any] = {"message": error.message, "errorCode": error.code}
    if error.fields:
        body["fields"] = list(error.fields)
    return json_response([body], error.status, headers)
