"""What ``check`` reports about buckets, through the store and through Delta's library."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem, TargetUnavailable
from airflow_cdc_provider.core.spec.definition import TableRule, Target
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.staging.open_store import open_store
from airflow_cdc_provider.targets.delta.target import DeltaTarget
from tests.buckets import ObjectStore

pytestmark = pytest.mark.server

SCHEMA = TableSchema("public.t", (Column("id", LogicalType(Kind.INT64), False),), ("id",))
TASK = TableTask("public.t", "t", SCHEMA, TableRule("public.t"), "", TableState.PENDING)


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with ObjectStore(tmp_path_factory.mktemp("moto") / "log") as running:
        yield running


class Relay(BaseHTTPRequestHandler):
    """Forwards requests to the real store without their condition; with ``refuse`` it answers 403."""

    store = ""
    refuse = False

    def hand_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.refuse:
            status, kind, content = 403, "application/xml", b"<Error><Code>AccessDenied</Code></Error>"
        else:
            onward = http.client.HTTPConnection(self.store)
            headers = {name: value for name, value in self.headers.items() if name.lower() != "if-none-match"}
            onward.request(self.command, self.path, body, headers)
            answer = onward.getresponse()
            status, kind, content = answer.status, answer.getheader("Content-Type", ""), answer.read()
            onward.close()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("ETag", '"x"')
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = hand_on

    def log_message(self, format: str, *arguments: object) -> None:
        """Suppressed."""


@pytest.fixture(params=[False, True], ids=["forgetful", "refusing"])
def relay(objects: ObjectStore, request: pytest.FixtureRequest) -> Iterator[ConnectionInfo]:
    fields = {"store": objects.endpoint.removeprefix("http://"), "refuse": request.param}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Relay,), fields))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield replace(objects.connection, extra={"endpoint_url": f"http://127.0.0.1:{server.server_port}"})
    server.shutdown()
    server.server_close()


def target(location: str, connection: ConnectionInfo) -> DeltaTarget:
    return DeltaTarget(Target("delta", location), connection, "shop", ChangeLog(LocalStore("/nowhere")))


def check(location: str, connection: ConnectionInfo) -> list[Problem]:
    return target(location, connection).check([TASK])


def test_a_bucket_with_all_required_features_is_no_problem_and_nothing_remains_in_it(objects: ObjectStore) -> None:
    assert check("s3://lake/clean", objects.connection) == []
    assert objects.keys("clean") == []


def test_a_store_that_ignores_conditions_or_refuses_access_is_reported(
    relay: ConnectionInfo, request: pytest.FixtureRequest
) -> None:
    (problem,) = check("s3://lake/x", relay)
    if "forgetful" in request.node.name:
        assert problem.code == "TGT004" and "If-None-Match" in problem.do
    else:
        assert problem.code == "STG010" and "AccessDenied" in problem.found and "put, delete and list" in problem.do


def test_a_missing_bucket_or_endpoint_is_reported(objects: ObjectStore) -> None:
    (problem,) = check("s3://no-such-bucket/x", objects.connection)
    assert "no such bucket" in problem.found and "s3://no-such-bucket/x/" in problem.where
    (problem,) = check("s3://lake/x", replace(objects.connection, extra={"endpoint_url": "http://127.0.0.1:9"}))
    assert "after 5 retries" in problem.found


def test_a_prefix_with_files_that_are_no_delta_table_is_reported(objects: ObjectStore) -> None:
    open_store("s3://lake/taken", objects.connection).write("t/notes.txt", b"mine")
    assert [problem.code for problem in check("s3://lake/taken", objects.connection)] == ["TGT011"]


def test_an_error_of_deltas_library_is_reported_in_one_line(objects: ObjectStore) -> None:
    with pytest.raises(TargetUnavailable, match=r"TGT010.*s3://no-such-bucket/t \| found: OSError: NoSuchBucket \|"):
        target("s3://no-such-bucket", objects.connection).state("public.t", "t")


def test_a_session_token_of_the_environment_is_not_used_with_a_key_of_the_connection(
    objects: ObjectStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-somebody-else")
    with pytest.raises(CheckFailed, match=r"CON021.*unset AWS_SESSION_TOKEN") as caught:
        target("s3://lake/x", objects.connection).state("public.t", "t")
    assert "of-somebody-else" not in str(caught.value)
    assert not target(str(tmp_path), objects.connection).state("public.t", "t").exists
