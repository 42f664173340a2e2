"""The state of the Datastream stream that writes the files, asked of Google's API: silence of its files alone cannot be
distinguished from a source without changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.google import google_endpoint, google_login, require_encrypted
from airflow_cdc_provider.core.errors import CheckFailed, Problem, SourceUnavailable
from airflow_cdc_provider.core.registry import load_library

GOOGLE = "https://datastream.googleapis.com"
REQUEST_LIMIT_S = 30
DENIED, NOT_FOUND = (401, 403), 404
RUNNING = "RUNNING"
ROLE = "roles/datastream.viewer"


@dataclass(frozen=True)
class StreamState:
    """``state``: as Google names it. ``changed_at``: when the stream was last changed; None if unknown. ``errors``:
    their messages."""

    stream: str
    state: str
    changed_at: datetime | None
    errors: tuple[str, ...]

    @property
    def is_healthy(self) -> bool:
        return self.state == RUNNING and not self.errors

    @property
    def problem(self) -> Problem | None:
        """None if it is running without errors."""
        if self.is_healthy:
            return None
        return Problem(
            "SRC132",
            "the Datastream stream that writes the files does not run without errors",
            where=self.stream,
            found="; ".join([self.state, *self.errors]),
            allowed=RUNNING,
            do=f"gcloud datastream streams describe {self.stream}; mend the error, then resume the stream. "
            "If it has lost changes, start a new stream into a new folder, and name that in the YAML: do not backfill",
            data="the copies have what was written before; changes wait in the source while it keeps its log",
        )


def read_stream(stream: str, connection: ConnectionInfo) -> StreamState:
    """Raises SourceUnavailable (SRC133) if the API does not answer, CheckFailed (SRC134) without a login, if it denies
    access or has no such stream, and CheckFailed (CON040) for a connection that cannot be used."""
    auth = load_library("google.auth.exceptions", "source", "datastream")
    transport = load_library("google.auth.transport.requests", "source", "datastream")
    url = google_endpoint(connection) or GOOGLE
    require_encrypted(connection, url, "a host")
    try:
        with transport.AuthorizedSession(google_login(connection, "datastream")[0]) as session:
            answer = session.get(f"{url}/v1/{stream}", timeout=REQUEST_LIMIT_S)
            body = answer.json() if answer.status_code == 200 else {}
    except CheckFailed:
        raise
    except Exception as error:  # of google-auth, of its HTTP client, or a body that is no JSON
        found = f"{type(error).__name__}: {error}".splitlines()[0][:300]
        if isinstance(error, auth.GoogleAuthError) and not isinstance(error, auth.TransportError):
            do = f"give connection {connection.connection_id} a login, or the host one with {ROLE}"
            raise _not_readable(stream, url, found, do) from error
        raise _unavailable(stream, url, found) from error
    if answer.status_code in DENIED or answer.status_code == NOT_FOUND:
        do = f"grant the login of connection {connection.connection_id} {ROLE}, or correct `stream`"
        raise _not_readable(stream, url, f"HTTP {answer.status_code}", do)
    if answer.status_code != 200 or not isinstance(body, dict):
        raise _unavailable(stream, url, f"HTTP {answer.status_code}")
    return parse_stream(stream, body)


def parse_stream(stream: str, body: Mapping[str, Any]) -> StreamState:
    errors = tuple(
        ": ".join(str(one[name]) for name in ("reason", "message") if one.get(name)) for one in body.get("errors", ())
    )
    changed = body.get("updateTime")
    return StreamState(
        stream,
        str(body.get("state", "STATE_UNSPECIFIED")),
        datetime.fromisoformat(changed) if isinstance(changed, str) else None,
        errors,
    )


def _not_readable(stream: str, url: str, found: str, do: str) -> CheckFailed:
    return CheckFailed.of(
        "SRC134",
        "the state of the Datastream stream cannot be read",
        where=f"{url}, {stream}",
        found=found,
        do=do,
    )


def _unavailable(stream: str, url: str, found: str) -> SourceUnavailable:
    return SourceUnavailable.of(
        "SRC133",
        "the API of Datastream does not answer",
        where=f"{url}, {stream}",
        found=found,
        do="look whether this host reaches it, or leave out `stream`",
    )
