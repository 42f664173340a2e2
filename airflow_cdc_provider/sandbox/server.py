"""A server on loopback that ends with the process that started it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Self, TypedDict

from airflow_cdc_provider.core.errors import CheckFailed, Problem

HOST = "127.0.0.1"
START_LIMIT_S = 180
STOP_LIMIT_S = 20
# Ends the server when the pipe on its input closes. The kernel closes it when the parent process ends, in any way.
WATCH = 'read -r _; kill -"$1" "$2"'


class RunAs(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


class EmbeddedServer(ABC):
    """One server in a temporary folder.

    ``with`` creates it, runs it and deletes it; ``stop`` and ``start`` keep its data. ``name`` appears in errors.
    ``stop_signal`` ends it in order; ``kill_signal`` follows after ``STOP_LIMIT_S``.
    """

    host = HOST
    name: ClassVar[str]
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    kill_signal: ClassVar[signal.Signals] = signal.SIGKILL

    def __init__(self, run_as: RunAs | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"cdc-{self.name.lower()}-"))
        self.log = self.folder / "server.log"
        self._run_as: RunAs = run_as or {}
        self._server: subprocess.Popen[bytes] | None = None
        self._watch: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def _command(self) -> Sequence[str | Path]:
        """The command line of the server. Creates the data folder first. Raises CheckFailed, NotInstalled."""

    @abstractmethod
    def _is_ready(self) -> bool: ...

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.delete()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.delete()

    @property
    def pid(self) -> int | None:
        """None while it does not run."""
        return self._server.pid if self._server and self._server.poll() is None else None

    def start(self) -> None:
        """Raises the errors of ``_command``, and ``CheckFailed`` with the end of the log if it does not get ready."""
        if self.pid is not None:
            return
        command = self._command()
        with self.log.open("ab") as log:
            self._server = subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._run_as,
            )
        self._watch = subprocess.Popen(
            ["sh", "-c", WATCH, "watch", self.stop_signal.name.removeprefix("SIG"), str(self._server.pid)],
            stdin=subprocess.PIPE,
            start_new_session=True,
            **self._run_as,
        )
        self._wait_until_ready(self._server)

    def stop(self) -> None:
        """Stop the server and keep its data."""
        if self._watch is not None and self._watch.stdin is not None:
            self._watch.kill()
            self._watch.wait()
            self._watch.stdin.close()
            self._watch = None
        if self._server is None:
            return
        self._server.send_signal(self.stop_signal)
        try:
            self._server.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._server.send_signal(self.kill_signal)
            self._server.wait(STOP_LIMIT_S)
        self._server = None

    def delete(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    def _private(self, name: str, text: str) -> Path:
        """A file that only the server's user can read: it contains a password."""
        file = self.folder / name
        file.touch(0o600)
        file.write_text(text, encoding="utf-8")
        self._give_to_server(file)
        return file

    def _give_to_server(self, path: Path) -> None:
        if "user" in self._run_as:
            os.chown(path, self._run_as["user"], self._run_as["group"])

    def _wait_until_ready(self, server: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_LIMIT_S
        while server.poll() is None and time.monotonic() < deadline:
            if self._is_ready():
                return
            time.sleep(0.02)
        self.stop()
        output = self.log.read_text(errors="replace")
        raise CheckFailed(start_problem(f"the embedded {self.name} did not start", self.log, output))


def unprivileged(name: str) -> RunAs:
    """The user that root runs a server as, since these servers refuse to run as root. Other users run it themselves."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam(name)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def start_problem(what: str, where: Path, output: str) -> Problem:
    return Problem(
        "ENV012",
        what,
        where=str(where),
        found="\n".join(output.splitlines()[-20:]) or "no output",
        do="read the output above; if you are root, set TMPDIR to a folder that every user may enter",
    )
