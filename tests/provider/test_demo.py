"""The output of ``make demo``: lines, and on a terminal a progress line."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from rich.console import Console

from airflow_cdc_provider.sandbox.demo import __main__ as demo
from airflow_cdc_provider.sandbox.demo import run as runs
from airflow_cdc_provider.sandbox.demo.progress import Progress
from airflow_cdc_provider.sandbox.demo.run import DemoRun, Failed


class Playback:
    """An Airflow whose one run has these states of its tasks in turn."""

    python = "/bin/true"

    def __init__(self, home: Path, *states: dict[str, str], ends: str = "success") -> None:
        self.home, self.dags, self.environment = home, home, dict(os.environ) | {"AIRFLOW_HOME": str(home)}
        self.states, self.ends, self.at = list(states), ends, 0
        self.seen: list[str] = []
        self.render: Any = lambda: ""

    def trigger(self, dag: str) -> str:
        return "run"

    def tasks(self, dag: str, run: str) -> dict[str, str]:
        return self.states[min(self.at, len(self.states) - 1)]

    def wait(self, dag: str, run: str, limit_s: float, on_poll: Any) -> str:
        for at in range(len(self.states)):
            self.at = at
            on_poll()
            self.seen.append(str(self.render()))
        return self.ends

    def task_log(self, dag: str, run: str, task: str) -> str:
        return "what went wrong"


@pytest.fixture
def output(monkeypatch: pytest.MonkeyPatch) -> Console:
    console = Console(file=io.StringIO(), highlight=False, soft_wrap=True)
    monkeypatch.setattr(runs, "console", console)
    return console


def printed(output: Console) -> str:
    assert isinstance(output.file, io.StringIO)
    return output.file.getvalue()


def staged(tmp_path: Path, console: Console, *states: dict[str, str], ends: str = "success") -> DemoRun:
    airflow: Any = Playback(tmp_path, *states, ends=ends)
    stage = DemoRun(tmp_path, airflow, progress=Progress(console))
    airflow.render = stage.progress.__rich__
    return stage


RUN = ({"open": "running", "copy": "queued"}, {"open": "success", "copy": "running"}, {"open": "success"})


def test_the_output_to_a_pipe_is_plain_lines(tmp_path: Path, output: Console) -> None:
    stage = staged(tmp_path, output, *RUN)
    with stage.progress.shown():
        stage.follow("shop", "first run")
    assert printed(output) == "[    0 s] shop: first run\n"


def test_each_replicator_has_a_progress_line_with_its_task_and_the_time(tmp_path: Path) -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, width=80)
    stage = staged(tmp_path, terminal, *RUN)
    airflow: Any = stage.airflow
    with stage.progress.shown():
        stage.progress.show("crm", "verify")
        stage.follow("shop", "first run")
    assert airflow.seen == [
        "crm: verify, 0 s\nshop: open (0 of 2 tasks done), 0 s",
        "crm: verify, 0 s\nshop: copy (1 of 2 tasks done), 0 s",
        "crm: verify, 0 s\nshop: waiting (1 of 1 tasks done), 0 s",
    ]
    assert stage.progress.doing.keys() == {"crm"}, "a run that has ended is not shown"
    assert "crm: verify" in printed(terminal)


def test_the_output_fits_into_eighty_columns(tmp_path: Path, output: Console) -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, width=80)
    progress = Progress(terminal)
    for name in ("shop", "crm"):
        progress.show(name, "reconcile.resume_stream and snapshot (10 of 12 tasks done)")
    terminal.print(progress)
    assert printed(terminal).count("tasks done), 0 s") == 2
    assert max(map(len, demo.NEXT.splitlines())) <= 80


def test_an_airflow_that_does_not_answer_ends_the_demo_with_a_message(
    monkeypatch: pytest.MonkeyPatch, output: Console
) -> None:
    def silent(progress: Progress) -> bool:
        raise requests.ReadTimeout("read timed out")

    monkeypatch.setattr(demo, "run_demo", silent)
    monkeypatch.setattr(demo, "console", output)
    assert demo.main() == 1
    assert printed(output) == "Airflow does not answer: read timed out\n"


def test_a_run_that_fails_shows_the_logs_of_its_failed_tasks(tmp_path: Path, output: Console) -> None:
    stage = staged(tmp_path, output, {"open": "success", "copy": "failed"}, ends="failed")
    with pytest.raises(Failed, match="run run of shop failed"):
        stage.follow("shop", "first run")
    assert "task copy failed:\nwhat went wrong" in printed(output) and "task open" not in printed(output)


def test_the_table_of_verify_is_as_wide_as_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(file=io.StringIO(), width=72, soft_wrap=True)
    monkeypatch.setattr(runs, "console", terminal)
    stage = staged(tmp_path, terminal)
    stage.airflow.python = program(tmp_path, "echo $COLUMNS columns")
    stage.verify("shop")
    assert printed(terminal) == "72 columns\n"


@pytest.mark.parametrize(("code", "identical"), [(0, True), (1, False)])
def test_only_the_table_of_verify_is_printed(tmp_path: Path, output: Console, code: int, identical: bool) -> None:
    stage = staged(tmp_path, output)
    stage.airflow.python = program(tmp_path, f"echo the table; echo a log line of Airflow >&2; exit {code}")
    assert stage.verify("shop") is identical
    assert printed(output) == "the table\n"


def test_a_failed_verify_prints_the_reason(tmp_path: Path, output: Console) -> None:
    stage = staged(tmp_path, output)
    stage.airflow.python = program(tmp_path, "echo the reason >&2; exit 75")
    with pytest.raises(Failed, match="75"):
        stage.verify("shop")
    assert "the reason" in printed(output)


def test_an_airflow_that_is_kept_has_its_page_in_the_first_line(
    output: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = SimpleNamespace(dsn=str, port=1, instance_url="", pubsub_endpoint="")
    monkeypatch.setattr(demo, "console", output)
    for name in ("EmbeddedPostgres", "OrgProcess"):
        monkeypatch.setattr(demo, name, lambda *_: contextlib.nullcontext(server))
    monkeypatch.setattr(demo, "EmbeddedAirflow", lambda *_: SimpleNamespace(url="http://127.0.0.1:8080"))
    monkeypatch.setattr(demo, "prepare", lambda _: None)
    for part in (demo.shop, demo.crm):
        monkeypatch.setattr(part, "connection", lambda _: {})

    def no_shop(*_: object) -> None:
        raise Failed("no shop")

    monkeypatch.setattr(demo.database_shop, "build", no_shop)
    monkeypatch.setenv("KEEP", "1")
    with pytest.raises(Failed):
        demo.run_demo(Progress(output))
    assert printed(output).splitlines()[0] == "Replicators, once Airflow runs: http://127.0.0.1:8080/plugin/replicators"


def test_the_proposed_commands_exist() -> None:
    lines = [line.split("   ")[0].split() for line in demo.NEXT.splitlines() if line.startswith("  ")]
    assert ["make", "demo", "KEEP=1"] in lines
    assert all(Path(words[1]).is_file() for words in lines if words[0] == "less")


def test_another_terminal_reaches_the_demo_s_airflow(tmp_path: Path, output: Console) -> None:
    stage = staged(tmp_path, output)
    path = stage.environment_file()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    shell = subprocess.run(["sh", "-c", f". {path}; echo $AIRFLOW_HOME"], capture_output=True, text=True, env={})
    assert shell.stdout.strip() == str(tmp_path)


def program(folder: Path, script: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    assert sys.executable
    return str(path)
