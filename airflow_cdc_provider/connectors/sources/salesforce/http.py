"""Requests to an org's REST API: renew the token, retry transient failures, map errors."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from tenacity import RetryCallState, Retrying, retry_if_exception_type, retry_if_result, stop_after_attempt

from airflow_cdc_provider.connectors.sources.salesforce.failures import rest_failure
from airflow_cdc_provider.connectors.sources.salesforce.oauth import TIMEOUT_S, AccessToken, Login
from airflow_cdc_provider.core.errors import SourceUnreachable

if TYPE_CHECKING:
    from requests import Response, Session

TRIES = 5
MAX_PAUSE_S = 60.0
LIMITS = frozenset({"REQUEST_LIMIT_EXCEEDED", "LIMIT_EXCEEDED"})
"""Have status 403 or 503, and are not retried within a run."""


class Http:
    """One per process; thread-safe. ``sleep`` is a seam for tests."""

    def __init__(self, login: Login, session: Session, sleep: Callable[[float], None] = time.sleep) -> None:
        self.login = login
        self._session = session
        self._sleep = sleep
        self._token: AccessToken | None = None
        self._renewing = threading.Lock()

    def token(self) -> AccessToken:
        """The current token. Its lifetime is unknown: it is renewed when it is refused."""
        return self._token or self.renew(None)

    def renew(self, stale: AccessToken | None) -> AccessToken:
        """Replace a refused token, once for all threads: a refresh token may be valid only once."""
        with self._renewing:
            if self._token is None or self._token is stale:
                self._token = self.login.token()
            return self._token

    def json(self, method: str, path: str, **request: Any) -> Any:
        """The body of a response, with real numbers as Decimal; None if it is empty. Raises what ``send`` raises, and
        SourceUnreachable (CON013) if the body is no JSON, such as that of a proxy or a maintenance page."""
        response = self.send(method, path, **request)
        try:
            return json.loads(response.content, parse_float=Decimal) if response.content else None
        except ValueError as error:
            raise SourceUnreachable.of(
                "CON013",
                "the response does not come from the org",
                self._where(method, path),
                f"HTTP {response.status_code}, {response.headers.get('Content-Type', 'no type')}, and no JSON",
                do="try again; check proxies between this worker and Salesforce",
            ) from error

    def send(self, method: str, path: str, **request: Any) -> Response:
        """A response with status 2xx or 304. ``path`` starts with a slash. Transient failures are retried with
        exponential backoff; a refused token is renewed once. Raises the error of ``rest_failure``."""
        token = self.token()
        response = self._retry(token, method, path, request)
        if response.status_code == 401:
            response = self._retry(self.renew(token), method, path, request)
        if response.status_code < 300 or response.status_code == 304:
            return response
        raise rest_failure(response.status_code, *_error_of(response), self._where(method, path))

    def _retry(self, token: AccessToken, method: str, path: str, request: dict[str, Any]) -> Response:
        """The first response that is not a transient failure, else the last one."""
        from requests import RequestException

        retrying = Retrying(
            retry=retry_if_exception_type(RequestException) | retry_if_result(_is_transient),
            wait=_pause_s,
            stop=stop_after_attempt(TRIES),
            sleep=self._sleep,
            retry_error_callback=_last_result,
        )
        try:
            return retrying(
                self._session.request,
                method,
                token.instance_url + path,
                timeout=TIMEOUT_S,
                proxies=dict(self.login.access.proxies),
                allow_redirects=False,
                **(request | {"headers": _headers(token, request.get("headers", {}))}),
            )
        except RequestException as error:
            raise self._unreachable(error) from error

    def _where(self, method: str, path: str) -> str:
        """Without the query string, which may contain values."""
        assert self._token is not None
        return f"{method} {self._token.instance_url}{path.partition('?')[0]}"

    def _unreachable(self, error: Exception) -> SourceUnreachable:
        where = self._token.instance_url if self._token else self.login.access.login_url
        return SourceUnreachable.of(
            "CON010", "the org cannot be reached", where, type(error).__name__, do="check the network"
        )


def server_time(response: Response) -> datetime:
    """The server's clock in UTC, from the header ``Date``."""
    return parsedate_to_datetime(response.headers["Date"])


def _headers(token: AccessToken, more: Mapping[str, str]) -> dict[str, str]:
    return {"Authorization": f"Bearer {token.access_token}", "Accept": "application/json", **more}


def _error_of(response: Response) -> tuple[str, str]:
    try:
        body = response.json()
    except ValueError:
        return "", ""
    return parse_error(body)


def parse_error(body: Any) -> tuple[str, str]:
    """Salesforce's error code and message; empty if the body has another format."""
    first = body[0] if isinstance(body, list) and body else body
    if not isinstance(first, dict):
        return "", ""
    return str(first.get("errorCode", "")), str(first.get("message", ""))


def _is_transient(response: Response) -> bool:
    status = response.status_code
    code = _error_of(response)[0] if status >= 400 else ""
    if code in LIMITS:
        return False
    return status in (406, 408, 420, 429) or status >= 500 or code in ("QUERY_TIMEOUT", "SERVER_UNAVAILABLE")


def _last_result(state: RetryCallState) -> Response:
    assert state.outcome is not None
    return state.outcome.result()  # type: ignore[no-any-return]


def _pause_s(state: RetryCallState) -> float:
    """As long as the server asks for, else growing."""
    assert state.outcome is not None
    asked = None if state.outcome.failed else _retry_after(state.outcome.result())
    return min(MAX_PAUSE_S, asked if asked is not None else random.uniform(0.5, 1) * 2**state.attempt_number)


def _retry_after(response: Response) -> float | None:
    """In seconds. The header may be a date of the server's clock."""
    text = response.headers.get("Retry-After", "")
    if text.isdecimal():
        return float(text)
    try:
        return max(0.0, (parsedate_to_datetime(text) - server_time(response)).total_seconds())
    except (KeyError, TypeError, ValueError):
        return None
