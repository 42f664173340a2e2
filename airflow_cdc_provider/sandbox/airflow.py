"""An Airflow on loopback with its own home folder and ports and a real scheduler."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import requests

from airflow_cdc_provider.sandbox.ports import free_ports

START_LIMIT_S = 900
"""On a busy machine a start takes minutes. A start that fails ends earlier."""
STOP_LIMIT_S = 30
RESPONSE_LIMIT_S = 300
"""With more work than cores, a response may take more than half a minute."""
ENDED = frozenset({"success", "failed"})


class EmbeddedAirflow:
    """``home`` holds configuration, database, logs and ``dags/``. Use as a context manager.

    ``database`` is the URL of an empty PostgreSQL database: parts of Airflow that share an SQLite block each other.
    ``connections`` maps a connection id to the JSON form of an Airflow connection. ``python`` is the interpreter that
    has Airflow and the provider installed.
    """

    def __init__(
        self, home: Path, database: str, connections: Mapping[str, Mapping[str, Any]], python: str = sys.executable
    ) -> None:
        self.home = home
        self.python = python
        self.dags = home / "dags"
        self.dags.mkdir(parents=True, exist_ok=True)
        self.port, worker_port, trigger_port = free_ports(3)
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = os.environ | {
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database,
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__PARALLELISM": "4",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(worker_port),
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(trigger_port),
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
            "AIRFLOW__WORKERS__SOCKET_CLEANUP_TIMEOUT": "5",
            "PATH": f"{Path(python).parent}{os.pathsep}{os.environ.get('PATH', '')}",
            **{f"AIRFLOW_CONN_{name.upper()}": json.dumps(fields) for name, fields in connections.items()},
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._token = ""

    def __enter__(self) -> EmbeddedAirflow:
        with (self.home / "standalone.log").open("ab") as log:
            self._process = subprocess.Popen(
                [self.python, "-m", "airflow", "standalone"],
                env=self.environment,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._wait_until_healthy()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the whole process group: with SIGTERM first, then with SIGKILL."""
        if self._process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, number)
            except ProcessLookupError:
                break
            if self._group_ended():
                break
        self._process.wait()
        self._process = None

    def cli(self, *arguments: str, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run ``airflow …`` with this home folder; output is captured as text."""
        result = subprocess.run(
            [self.python, "-m", "airflow", *arguments],
            env=self.environment,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            **options,
        )
        if check and result.returncode:
            raise RuntimeError(
                f"airflow {' '.join(arguments)} ended with exit code {result.returncode}:\n"
                f"{result.stdout}{result.stderr}"
            )
        return result

    @property
    def login(self) -> tuple[str, str]:
        passwords = json.loads((self.home / "simple_auth_manager_passwords.json.generated").read_text())
        return cast(tuple[str, str], next(iter(passwords.items())))

    @property
    def token(self) -> str:
        """Of the user of ``login``, as Airflow's pages have it in the cookie ``_token``."""
        if not self._token:
            user, password = self.login
            response = requests.post(
                f"{self.url}/auth/token", json={"username": user, "password": password}, timeout=RESPONSE_LIMIT_S
            )
            response.raise_for_status()
            self._token = response.json()["access_token"]
        return self._token

    def request(self, method: str, path: str, missing_is_fine: bool = False, **options: Any) -> Any:
        """Call the public REST API (``path`` below ``/api/v2``). Returns the response's JSON, None without a body."""
        response = requests.request(
            method,
            f"{self.url}/api/v2{path}",
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=RESPONSE_LIMIT_S,
            **options,
        )
        if response.status_code == 404 and missing_is_fine:
            return None
        response.raise_for_status()
        return response.json() if response.content else None

    def wait_for_dag(self, dag_id: str, limit_s: float = 300) -> None:
        """Wait until the DAG is parsed, then unpause it. Raises RuntimeError with the text of an import error."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            if errors := self.request("GET", "/importErrors")["import_errors"]:
                raise RuntimeError("\n".join(error["stack_trace"] for error in errors))
            try:
                self.request("PATCH", f"/dags/{dag_id}", json={"is_paused": False})
                return
            except requests.HTTPError:
                time.sleep(0.5)
        raise TimeoutError(f"DAG {dag_id} did not appear within {limit_s:.0f} s")

    def trigger(self, dag_id: str, **conf: Any) -> str:
        """Start a manual run. Returns its run id."""
        body = {"logical_date": None, "conf": conf}
        return cast(str, self.request("POST", f"/dags/{dag_id}/dagRuns", json=body)["dag_run_id"])

    def wait(self, dag_id: str, run_id: str, limit_s: float = 600, on_poll: Callable[[], None] = lambda: None) -> str:
        """Wait for the end of a run. Returns its state. ``on_poll`` is called after each request for the state."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            state = self.request("GET", f"/dags/{dag_id}/dagRuns/{run_id}")["state"]
            if state in ENDED:
                return cast(str, state)
            on_poll()
            time.sleep(0.5)
        raise TimeoutError(f"run {run_id} of {dag_id} did not end within {limit_s:.0f} s")

    def tasks(self, dag_id: str, run_id: str) -> dict[str, str]:
        """The state of each task of a run, by task id."""
        instances = self.request("GET", f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances")["task_instances"]
        return {instance["task_id"]: instance["state"] for instance in instances}

    def task_log(self, dag_id: str, run_id: str, task_id: str, attempt: int = 1) -> str:
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/logs/{attempt}"
        content = self.request("GET", path, params={"full_content": "true"})["content"]
        return "\n".join(text for line in content for text in log_texts(line))

    def _wait_until_healthy(self) -> None:
        deadline = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline:
            assert self._process
            if self._process.poll() is not None:
                break
            try:
                health = requests.get(f"{self.url}/api/v2/monitor/health", timeout=5).json()
                if all(health[part]["status"] == "healthy" for part in ("metadatabase", "scheduler", "dag_processor")):
                    return
            except (requests.RequestException, KeyError, ValueError):
                pass
            time.sleep(0.5)
        tail = (self.home / "standalone.log").read_text(errors="replace")[-4000:]
        raise TimeoutError(f"Airflow did not become healthy within {START_LIMIT_S} s:\n{tail}")

    def _group_ended(self) -> bool:
        assert self._process
        deadline = time.monotonic() + STOP_LIMIT_S
        while time.monotonic() < deadline:
            self._process.poll()
            try:
                os.killpg(self._process.pid, 0)
            except ProcessLookupError:
                return True
            time.sleep(0.1)
        return False


def log_texts(line: Any) -> Iterator[str]:
    """The texts of one line of a task log: its event and the exceptions attached to it."""
    if not isinstance(line, dict):
        yield str(line)
        return
    yield str(line.get("event", ""))
    for error in line.get("error_detail") or ():
        yield f"{error['exc_type']}: {error['exc_value']}"
