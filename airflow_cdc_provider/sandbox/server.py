"""A server on loopback that lives as long as the process that started it."""

from __future__ import annotations

import os
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
# Ends the server when the pipe on its input closes, which the kernel does for us however our own process ends.
WATCH = 'read -r _; kill -"$1" "$2"'


class RunAs(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


class EmbeddedServer(ABC):
    """One server in a temporary folder.

    ``with`` makes it, runs it and deletes it; ``stop`` and ``start`` in between keep what is in it. ``name`` is what
    errors call it; ``ends`` is the signal it ends well by, ``drops`` the one for when that takes too long.
    """

    host = HOST
    name: ClassVar[str]
    ends: ClassVar[signal.Signals] = signal.SIGTERM
    drops: ClassVar[signal.Signals] = signal.SIGKILL

    def __init__(self, run_as: RunAs | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"cdc-{self.name.lower()}-"))
        self.log = self.folder / "server.log"
        self._run_as: RunAs = run_as or {}
        self._server: subprocess.Popen[bytes] | None = None
        self._watch: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def _command(self) -> Sequence[str | Path]:
        """What runs the server, whose data are made by then. Raises CheckFailed, NotInstalled."""

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
        """None when it is not running."""
        return self._server.pid if self._server and self._server.poll() is None else None

    def start(self) -> None:
        """Raises ``CheckFailed`` with the end of the log if it does not come up, and what its making raises."""
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
            ["sh", "-c", WATCH, "watch", self.ends.name.removeprefix("SIG"), str(self._server.pid)],
            stdin=subprocess.PIPE,
            start_new_session=True,
            **self._run_as,
        )
        self._wait_until_ready(self._server)

    def stop(self) -> None:
        """A server that does not end in ``STOP_LIMIT_S`` is made to."""
        if self._watch is not None and self._watch.stdin is not None:
            self._watch.kill()
            self._watch.wait()
            self._watch.stdin.close()
            self._watch = None
        if self._server is None:
            return
        self._server.send_signal(self.ends)
        try:
            self._server.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._server.send_signal(self.drops)
            self._server.wait(STOP_LIMIT_S)
        self._server = None

    def delete(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    def _private(self, name: str, text: str) -> Path:
        """A file in the folder for the eyes of the server's user: it holds a password."""
        file = self.folder / name
        file.touch(0o600)
        file.write_text(text, encoding="utf-8")
        if "user" in self._run_as:
            os.chown(file, self._run_as["user"], self._run_as["group"])
        return file

    def _wait_until_ready(self, server: subprocess.Popen[bytes]) -> None:
        give_up = time.monotonic() + START_LIMIT_S
        while server.poll() is None and time.monotonic() < give_up:
            if self._is_ready():
                return
            time.sleep(0.02)
        self.stop()
        output = self.log.read_text(errors="replace")
        raise CheckFailed(not_up(f"the embedded {self.name} did not start", self.log, output))


def not_up(what: str, where: Path, output: str) -> Problem:
    return Problem(
        "ENV012",
        what,
        where=str(where),
        found="\n".join(output.splitlines()[-20:]) or "no output",
        do="read the output above; as root, TMPDIR must be a folder that every user may enter",
    )
