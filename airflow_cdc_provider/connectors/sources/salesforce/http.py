"""Requests to an org's REST interface: a token kept fresh, patience with what passes, errors in our words."""

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

from airflow_cdc_provider.connectors.sources.salesforce.failures import rest_failure
from airflow_cdc_provider.connectors.sources.salesforce.oauth import TIMEOUT_S, AccessToken, Login
from airflow_cdc_provider.core.errors import CdcError, Problem, SourceUnavailable

if TYPE_CHECKING:
    from requests import Response, Session

TRIES = 5
LONGEST_WAIT_S = 60.0
USED_UP = frozenset({"REQUEST_LIMIT_EXCEEDED", "LIMIT_EXCEEDED"})
"""Come with 403 or 503 and do not pass within a run."""


class Http:
    """One per process, for any number of threads. ``sleep`` is a seam for tests."""

    def __init__(self, login: Login, session: Session, sleep: Callable[[float], object] = time.sleep) -> None:
        self.login = login
        self._session = session
        self._sleep = sleep
        self._token: AccessToken | None = None
        self._renewing = threading.Lock()

    def token(self) -> AccessToken:
        """The token in use. Nobody says how long one lives: it is renewed when it is refused."""
        return self._token or self.renewed(None)

    def renewed(self, stale: AccessToken | None) -> AccessToken:
        """The token that replaces a refused one. Whoever comes second takes the one that the first was given: a refresh
        token may serve only once."""
        with self._renewing:
            if self._token is None or self._token is stale:
                self._token = self.login.token()
            return self._token

    def json(self, method: str, path: str, **request: Any) -> Any:
        """The body of an answer, its reals as Decimal; None where it has none. Raises what ``send`` raises, and
        SourceUnavailable where a proxy or a notice of maintenance answered in the org's place."""
        response = self.send(method, path, **request)
        try:
            return json.loads(response.content, parse_float=Decimal) if response.content else None
        except ValueError as error:
            raise SourceUnavailable(
                Problem(
                    "CON013",
                    "something else than the org answered",
                    self._where(method, path),
                    f"HTTP {response.status_code}, {response.headers.get('Content-Type', 'no type')}, and no JSON",
                    do="try again; look at proxies between this worker and Salesforce",
                )
            ) from error

    def send(self, method: str, path: str, **request: Any) -> Response:
        """An answer of 2xx or 304. ``path`` starts with a slash. A failure that may pass is tried again with growing
        pauses, a refused token is renewed once. Raises what ``rest_failure`` says."""
        renewed = False
        tried = 0
        while True:
            token = self.token()
            try:
                response = self._session.request(
                    method,
                    token.instance_url + path,
                    timeout=TIMEOUT_S,
                    proxies=dict(self.login.access.proxies),
                    allow_redirects=False,
                    **(request | {"headers": _headers(token, request.get("headers", {}))}),
                )
            except _requests().RequestException as error:
                failure: CdcError = self._unreachable(error)
                pause = None
            else:
                if response.status_code < 300 or response.status_code == 304:
                    return response
                code, message = _told(response)
                if response.status_code == 401 and not renewed:
                    renewed = True
                    self.renewed(token)
                    continue
                failure = rest_failure(response.status_code, code, message, self._where(method, path))
                if not _may_pass(response.status_code, code):
                    raise failure
                pause = _retry_after(response)
            tried += 1
            if tried == TRIES:
                raise failure
            self._sleep(min(LONGEST_WAIT_S, pause if pause is not None else random.uniform(0.5, 1) * 2**tried))

    def _where(self, method: str, path: str) -> str:
        """Without the query: it may hold values."""
        assert self._token is not None
        return f"{method} {self._token.instance_url}{path.partition('?')[0]}"

    def _unreachable(self, error: Exception) -> SourceUnavailable:
        where = self._token.instance_url if self._token else self.login.access.login_url
        return SourceUnavailable(
            Problem("CON010", "the org cannot be reached", where, type(error).__name__, do="check the network")
        )


def server_time(response: Response) -> datetime:
    """The server's clock in UTC, by the header that every answer bears."""
    return parsedate_to_datetime(response.headers["Date"])


def _headers(token: AccessToken, more: Mapping[str, str]) -> dict[str, str]:
    return {"Authorization": f"Bearer {token.access_token}", "Accept": "application/json", **more}


def _told(response: Response) -> tuple[str, str]:
    """Salesforce's error code and message; empty where a proxy or a crash answered."""
    try:
        answer = response.json()
    except ValueError:
        return "", ""
    return told(answer)


def told(answer: Any) -> tuple[str, str]:
    """The same of a parsed answer."""
    first = answer[0] if isinstance(answer, list) and answer else answer
    if not isinstance(first, dict):
        return "", ""
    return str(first.get("errorCode", "")), str(first.get("message", ""))


def _may_pass(status: int, code: str) -> bool:
    if code in USED_UP:
        return False
    return status in (406, 408, 420, 429) or status >= 500 or code in ("QUERY_TIMEOUT", "SERVER_UNAVAILABLE")


def _retry_after(response: Response) -> float | None:
    """Seconds, or a date by the server's own clock."""
    text = response.headers.get("Retry-After", "")
    if text.isdecimal():
        return float(text)
    try:
        return max(0.0, (parsedate_to_datetime(text) - server_time(response)).total_seconds())
    except (KeyError, TypeError, ValueError):
        return None


def _requests() -> Any:
    import requests  # a worker that runs no Salesforce source need not have it

    return requests
