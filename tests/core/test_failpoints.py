"""A failpoint fires once, where a test has armed it, and never in production."""

from __future__ import annotations

import errno
import signal
import subprocess
import sys
import time
from http.client import RemoteDisconnected
from pathlib import Path

import pytest
from airflow_cdc_failpoints import ARMED, TOKEN

from airflow_cdc_provider.core.errors import SourceUnavailable
from airflow_cdc_provider.core.failpoints import failpoint


@pytest.fixture
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "token"
    path.touch()
    monkeypatch.setenv(TOKEN, str(path))
    return path


def test_without_the_module_of_the_tests_there_are_no_faults(token: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ARMED, "a=kill9")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    script = "from airflow_cdc_provider.core.failpoints import failpoint; failpoint('a'); print('on')"
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "on\n"
    assert token.exists()


def test_an_environment_variable_alone_arms_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(ARMED, "a=raise:SourceUnavailable")
    failpoint("a")
    monkeypatch.setenv(TOKEN, str(tmp_path / "missing"))
    failpoint("a")


def test_a_failpoint_fires_once_at_the_ordered_pass(token: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ARMED, "other=sleep:60;a=raise:SourceUnavailable@3")
    failpoint("a")
    failpoint("a")
    with pytest.raises(SourceUnavailable, match="failpoint a"):
        failpoint("a")
    assert not token.exists()
    failpoint("a")


def test_a_full_disk_raises_the_error_of_a_full_disk(token: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ARMED, "a=enospc")
    with pytest.raises(OSError) as caught:
        failpoint("a")
    assert caught.value.errno == errno.ENOSPC


def test_an_unknown_action_is_an_error(token: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ARMED, "a=explode")
    with pytest.raises(ValueError, match="explode"):
        failpoint("a")


def test_a_lost_answer_raises_the_error_of_its_library(token: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ARMED, "a=raise:http.client.RemoteDisconnected")
    with pytest.raises(RemoteDisconnected, match="failpoint a"):
        failpoint("a")


def test_a_suspended_process_continues_where_it_stopped(token: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ARMED, "a=freeze")
    script = "from airflow_cdc_provider.core.failpoints import failpoint; failpoint('a'); print('on')"
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    while "State:\tT" not in Path(f"/proc/{process.pid}/status").read_text():
        time.sleep(0.01)
    assert not token.exists()
    process.send_signal(signal.SIGCONT)
    assert process.communicate() == ("on\n", None)


def test_a_process_without_a_jvm_has_none_to_kill(token: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ARMED, "a=kill9:jvm")
    with pytest.raises(ValueError, match="no JVM"):
        failpoint("a")
