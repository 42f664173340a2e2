"""A folder of Datastream's files asks for the state of the stream that writes them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import google.auth.exceptions
import pytest

from airflow_cdc_provider.connectors.transports.files.datastream_api import read_stream
from airflow_cdc_provider.connectors.transports.files.source import FilesSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed, SourceUnavailable
from airflow_cdc_provider.core.spec.definition import Source

STREAM = "projects/shop-1/locations/europe-west1/streams/orders"
CHANGED = "2026-11-27T12:00:00.123456789Z"
ERROR = {
    "reason": "MYSQL_BINLOG_RETENTION",
    "message": "binlog file is not available",
    "errorUuid": "a1b2",
    "errorTime": CHANGED,
    "details": {"error_code": "1236"},
}


class Api(ThreadingHTTPServer):
    """``answer``: status and body, as documented for ``projects.locations.streams.get``."""

    answer: tuple[int, Any] = (200, {})
    asked = ""

    @property
    def connection(self) -> ConnectionInfo:
        host = f"http://127.0.0.1:{self.server_port}"
        return ConnectionInfo("google", host=host, extra={"is_anonymous": True})

    def says(self, state: str, *errors: dict[str, Any]) -> None:
        self.answer = (200, {"name": STREAM, "state": state, "errors": list(errors), "updateTime": CHANGED})


class Handler(BaseHTTPRequestHandler):
    server: Api

    def do_GET(self) -> None:
        self.server.asked = self.path
        status, body = self.server.answer
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def api() -> Iterator[Api]:
    with Api(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def source(api: Api, folder: Path) -> FilesSource:
    options = {"format": "datastream", "location": str(folder), "stream": STREAM}
    return FilesSource(Source("files", connection="google", options=options), api.connection, "shop")


def old_file(folder: Path, hours: float) -> datetime:
    file = folder / "shop_orders/2026/11/27/12/00/one.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    os.utime(file, (time.time() - hours * 3600,) * 2)
    return datetime.now(UTC) - timedelta(hours=hours)


def test_a_running_stream_is_not_silent_however_old_its_files_are(api: Api, tmp_path: Path) -> None:
    old_file(tmp_path, 40)
    api.says("RUNNING")
    assert source(api, tmp_path).silent_since() is None
    assert api.asked == f"/v1/{STREAM}"
    assert "SRC132" not in [problem.code for problem in source(api, tmp_path).check([])]


@pytest.mark.parametrize("state", ["PAUSED", "FAILED", "FAILED_PERMANENTLY", "MAINTENANCE", "DRAINING", "NOT_STARTED"])
def test_a_stream_that_does_not_run_is_silent_since_its_newest_file(api: Api, tmp_path: Path, state: str) -> None:
    written = old_file(tmp_path, 0.25)
    api.says(state)
    since = source(api, tmp_path).silent_since()
    assert since is not None and abs(since - written) < timedelta(minutes=1)


def test_without_any_file_it_is_silent_since_the_stream_was_changed(api: Api, tmp_path: Path) -> None:
    api.says("PAUSED")
    assert source(api, tmp_path).silent_since() == datetime(2026, 11, 27, 12, 0, 0, 123456, UTC)


def test_the_errors_of_a_running_stream_are_problems(api: Api, tmp_path: Path) -> None:
    written = old_file(tmp_path, 2)
    api.says("RUNNING", ERROR)
    one = source(api, tmp_path)
    since = one.silent_since()
    assert since is not None and abs(since - written) < timedelta(minutes=1)
    (problem,) = [problem for problem in one.check([]) if problem.code == "SRC132"]
    assert problem.found == "RUNNING; MYSQL_BINLOG_RETENTION: binlog file is not available"
    assert STREAM in problem.do


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [(403, CheckFailed, "SRC134"), (404, CheckFailed, "SRC134"), (503, SourceUnavailable, "SRC133")],
)
def test_an_api_that_does_not_answer_is_an_error(api: Api, status: int, kind: type[Exception], code: str) -> None:
    api.answer = (status, {"error": {"code": status, "status": "ANY"}})
    with pytest.raises(kind, match=f"{code}.*{STREAM}"):
        read_stream(STREAM, api.connection)


def test_a_server_that_is_gone_is_an_error_that_a_retry_can_help(api: Api) -> None:
    api.server_close()
    with pytest.raises(SourceUnavailable, match="SRC133"):
        read_stream(STREAM, api.connection)


def test_a_missing_login_is_no_silence_of_the_api(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(**options: Any) -> Any:
        raise google.auth.exceptions.DefaultCredentialsError("Your default credentials were not found.")

    monkeypatch.setattr("google.auth.default", without)
    with pytest.raises(CheckFailed, match=r"SRC134.*DefaultCredentialsError.*do: give connection google a login"):
        read_stream(STREAM, ConnectionInfo("google"))


def test_check_shows_that_the_state_cannot_be_read(api: Api, tmp_path: Path) -> None:
    api.answer = (403, {})
    assert "SRC134" in [problem.code for problem in source(api, tmp_path).check([])]


def test_a_login_is_not_sent_to_another_host_without_tls() -> None:
    with pytest.raises(CheckFailed, match=r"CON040.*https"):
        read_stream(STREAM, ConnectionInfo("google", host="http://datastream.example.com"))
