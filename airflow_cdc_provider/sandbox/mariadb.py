"""A real MariaDB on loopback that lives as long as the process that started it.

The binaries are those of the system's package. MariaDB refuses to run as root, so root runs it as ``mysql``.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from airflow_cdc_provider.core.errors import CheckFailed, NotInstalled, Problem
from airflow_cdc_provider.sandbox.ports import free_ports
from airflow_cdc_provider.sandbox.postgres import HOST, START_LIMIT_S, STOP_LIMIT_S, RunAs, not_up

USER = "root"
SETTINGS = {
    "server-id": "1",
    "log-bin": "binlog",
    "binlog-format": "ROW",
    "binlog-row-image": "FULL",
    "binlog-row-metadata": "FULL",
    "innodb-flush-log-at-trx-commit": "0",
}
# Ends the server when the pipe on its input closes, which the kernel does for us however our own process ends.
WATCH = 'read -r _; kill -TERM "$1"'
SYSTEM_FOLDERS = ("/usr/sbin", "/usr/bin", "/usr/local/bin")


class EmbeddedMariaDB:
    """One server in a temporary folder, with a row binlog and password logins only.

    ``with EmbeddedMariaDB() as server`` makes it, runs it and deletes it. ``stop`` and ``start`` in between keep the
    data, the port and the password. ``settings`` are server options on top of ``SETTINGS``. Raises ``NotInstalled``
    (ENV016) where the system has no such server.
    """

    host = HOST
    user = USER

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        binary("mariadbd")
        self.settings = SETTINGS | dict(settings or {})
        (self.port,) = free_ports(1)
        self.password = secrets.token_urlsafe(16)
        self.folder = Path(tempfile.mkdtemp(prefix="cdc-mariadb-"))
        self.data = self.folder / "data"
        self.log = self.folder / "server.log"
        self._run_as = run_as()
        self._server: subprocess.Popen[bytes] | None = None
        self._watch: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> EmbeddedMariaDB:
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
        """Raises ``CheckFailed`` with the end of the log if it does not come up."""
        if self.pid is not None:
            return
        if not self.data.exists():
            self._create()
        options = {
            "datadir": str(self.data),
            "socket": str(self.folder / "socket"),
            "pid-file": str(self.folder / "pid"),
            "bind-address": HOST,
            "port": str(self.port),
            "init-file": str(self.folder / "init.sql"),
            **self.settings,
        }
        with self.log.open("ab") as log:
            self._server = subprocess.Popen(
                [binary("mariadbd"), "--no-defaults", *(f"--{name}={value}" for name, value in options.items())],
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
        """A server that does not end in ``STOP_LIMIT_S`` is killed."""
        if self._watch is not None and self._watch.stdin is not None:
            self._watch.kill()
            self._watch.wait()
            self._watch.stdin.close()
            self._watch = None
        if self._server is None:
            return
        self._server.send_signal(signal.SIGTERM)
        try:
            self._server.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait(STOP_LIMIT_S)
        self._server = None

    def delete(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    def _create(self) -> None:
        program = binary("mariadb-install-db")
        # Read by the server itself at each start; the folder is open to its user alone.
        (self.folder / "init.sql").write_text(
            f"ALTER USER 'root'@'localhost' IDENTIFIED BY '{self.password}';\n"
            f"CREATE OR REPLACE USER 'root'@'{HOST}' IDENTIFIED BY '{self.password}';\n"
            f"GRANT ALL ON *.* TO 'root'@'{HOST}' WITH GRANT OPTION;\n",
            encoding="utf-8",
        )
        if "user" in self._run_as:
            for path in (self.folder, self.folder / "init.sql"):
                os.chown(path, self._run_as["user"], self._run_as["group"])
        options = ["--auth-root-authentication-method=normal", "--skip-test-db", f"--datadir={self.data}"]
        made = subprocess.run(
            [program, "--no-defaults", *options], cwd="/", capture_output=True, text=True, **self._run_as
        )
        if made.returncode != 0:
            raise CheckFailed(not_up("could not make a MariaDB data folder", self.data, made.stdout + made.stderr))

    def _wait_until_ready(self, server: subprocess.Popen[bytes]) -> None:
        """The port opens behind the init file, so whoever gets through finds the password in force."""
        give_up = time.monotonic() + START_LIMIT_S
        while server.poll() is None and time.monotonic() < give_up:
            try:
                socket.create_connection((HOST, self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.02)
        self.stop()
        raise CheckFailed(not_up("the embedded MariaDB did not start", self.log, self.log.read_text(errors="replace")))


def binary(name: str) -> str:
    """A program of the package. Raises NotInstalled (ENV016) where it is not there."""
    found = shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), *SYSTEM_FOLDERS)))
    if found is None:
        raise NotInstalled(
            Problem(
                "ENV016",
                "no MariaDB server on this machine",
                where="PATH",
                found=f"no program {name}",
                do="sudo apt-get install mariadb-server",
            )
        )
    return found


def run_as() -> RunAs:
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam("mysql")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
