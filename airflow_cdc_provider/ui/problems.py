"""Errors as RFC 9457 describes them: ``application/problem+json``, with the fields of ``Problem``."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from airflow.sdk.exceptions import AirflowException
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from airflow_cdc_provider.core.errors import (
    Blocked,
    CdcError,
    CommandRefused,
    DefinitionInvalid,
    KeyUsed,
    NotFound,
    Problem,
    Retryable,
    VersionChanged,
)
from airflow_cdc_provider.core.serde import to_plain

MEDIA_TYPE = "application/problem+json"
TYPE = "urn:airflow-cdc-provider:problem:"
RETRY_AFTER_S = 10
UNPARSED = HTTPStatus.BAD_REQUEST
"""FastAPI's answer to a body that is no text, or too deep to parse: it is a bad body as others are."""
STATUS: Sequence[tuple[type[CdcError], HTTPStatus]] = (
    (NotFound, HTTPStatus.NOT_FOUND),
    (KeyUsed, HTTPStatus.UNPROCESSABLE_ENTITY),
    (VersionChanged, HTTPStatus.PRECONDITION_FAILED),
    (CommandRefused, HTTPStatus.CONFLICT),
    (DefinitionInvalid, HTTPStatus.UNPROCESSABLE_ENTITY),
    (Blocked, HTTPStatus.CONFLICT),
    (Retryable, HTTPStatus.SERVICE_UNAVAILABLE),
    (CdcError, HTTPStatus.INTERNAL_SERVER_ERROR),
)


def add_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(CdcError, _of_provider)
    app.add_exception_handler(AirflowException, _of_airflow)
    app.add_exception_handler(HTTPException, _of_framework)
    app.add_exception_handler(RequestValidationError, _of_request)
    app.add_exception_handler(Exception, _of_bug)


def problem_response(
    request: Request, status: int, problems: Sequence[Problem], headers: dict[str, str] | None = None
) -> JSONResponse:
    first = problems[0]
    body: dict[str, Any] = {
        "type": f"{TYPE}{first.code}" if first.code else "about:blank",
        "title": first.what,
        "status": int(status),
        "detail": "; ".join(first.details),
        "instance": request.url.path,
        "problems": to_plain(problems),
    }
    return JSONResponse(body, status, headers, MEDIA_TYPE)


def _of_provider(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, CdcError)
    status = next(status for kind, status in STATUS if isinstance(error, kind))
    headers = {"Retry-After": str(RETRY_AFTER_S)} if error.retryable else None
    return problem_response(request, status, error.problems, headers)


def _of_airflow(request: Request, error: Exception) -> JSONResponse:
    """As a DAG that Airflow has not parsed yet."""
    found = (str(error).splitlines() or [type(error).__name__])[0][:200]
    problem = Problem("API006", "Airflow returned an error", found=found, do="look at the DAG in Airflow")
    return problem_response(request, HTTPStatus.SERVICE_UNAVAILABLE, [problem])


def _of_framework(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    problem = Problem("", str(error.detail))
    status = HTTPStatus.UNPROCESSABLE_ENTITY if error.status_code == UNPARSED else error.status_code
    return problem_response(request, status, [problem], dict(error.headers or {}))


def _of_bug(request: Request, error: Exception) -> JSONResponse:
    """Without its text, which may contain values. The log of the API server has it."""
    problem = Problem("API009", "internal error", do="look at the log of the API server, and report it")
    return problem_response(request, HTTPStatus.INTERNAL_SERVER_ERROR, [problem])


def _of_request(request: Request, error: Exception) -> JSONResponse:
    """Names the place, never the value: it may be a secret that was sent by mistake."""
    assert isinstance(error, RequestValidationError)
    problems = [Problem("", one["msg"], where=".".join(map(str, one["loc"]))) for one in error.errors()]
    return problem_response(request, HTTPStatus.UNPROCESSABLE_ENTITY, problems)
