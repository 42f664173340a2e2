"""The embedded server, its client, and the end of the process that started it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.sandbox import postgres
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.processes import is_running
from tests.waiting import until

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres({"work_mem": "5MB"}) as running:
        yield running


def ask(server: EmbeddedPostgres, query: str) -> object:
    with psycopg.connect(server.dsn()) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def test_it_supports_logical_decoding(server: EmbeddedPostgres) -> None:
    query = "select slot_name from pg_create_logical_replication_slot('probe', 'pgoutput', true)"
    assert ask(server, query) == "probe"


def test_it_accepts_settings(server: EmbeddedPostgres) -> None:
    assert ask(server, "show work_mem") == "5MB"


def test_it_listens_on_loopback_only(server: EmbeddedPostgres) -> None:
    assert ask(server, "show listen_addresses") == "127.0.0.1"
    assert ask(server, "show unix_socket_directories") == ""


def test_a_wrong_password_is_refused(server: EmbeddedPostgres) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(server.dsn(password="wrong"))


def test_a_restart_keeps_data_port_and_password(server: EmbeddedPostgres) -> None:
    with psycopg.connect(server.dsn()) as connection:
        connection.execute("create table kept as select 7 as n")
    first = server.pid
    server.stop()
    assert server.pid is None
    server.start()
    assert server.pid not in (None, first)
    assert ask(server, "select n from kept") == 7


def test_nothing_is_left_behind() -> None:
    with EmbeddedPostgres() as server:
        pid, folder = server.pid, server.folder
        assert pid is not None
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_two_servers_run_side_by_side(server: EmbeddedPostgres) -> None:
    with EmbeddedPostgres() as other:
        assert other.port != server.port
        assert ask(server, "select system_identifier from pg_control_system()") != ask(
            other, "select system_identifier from pg_control_system()"
        )


def test_a_server_that_cannot_start_shows_its_log_and_leaves_nothing() -> None:
    server = EmbeddedPostgres({"wal_level": "telepathic"})
    with pytest.raises(CheckFailed, match=r'ENV012 .*(.|\n)*invalid value for parameter "wal_level"'), server:
        pass
    assert not server.folder.exists()


def test_it_ends_with_a_killed_parent() -> None:
    program = (
        "from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres\n"
        "server = EmbeddedPostgres()\n"
        "server.start()\n"
        "print(server.pid, server.folder, flush=True)\n"
        "input()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        pid, folder = parent.stdout.readline().split()
        os.kill(int(pid), 0)
        parent.send_signal(signal.SIGKILL)
    try:
        until(lambda: not is_running(int(pid)), "the end of a server whose parent is gone")
    finally:
        shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands the server to another user")
def test_binaries_in_a_private_folder_are_copied_to_a_readable_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = postgres.bundle_folder()
    private = tmp_path / "site-packages"
    private.mkdir(mode=0o700)
    for name in (installed.name, f"{installed.name}.libs"):
        (private / name).symlink_to(installed.parent / name)
    monkeypatch.setattr(postgres, "bundle_folder", lambda: private / installed.name)
    with EmbeddedPostgres() as server:
        assert (server.folder / installed.name / "pginstall18/bin/postgres").is_file()
        assert ask(server, "select 1") == 1
