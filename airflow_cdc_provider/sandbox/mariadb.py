"""A real MariaDB on loopback that ends with the process that started it.

The binaries come from the system's package. MariaDB refuses to run as root, so root runs it as ``mysql``.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Mapping
from typing import ClassVar

from airflow_cdc_provider.core.errors import CheckFailed, NotInstalled
from airflow_cdc_provider.sandbox.ports import free_ports, is_open
from airflow_cdc_provider.sandbox.server import HOST, EmbeddedServer, RunAs, start_problem, unprivileged

USER = "root"
SETTINGS = {
    "server-id": "1",
    "log-bin": "binlog",
    "binlog-format": "ROW",
    "binlog-row-image": "FULL",
    "binlog-row-metadata": "FULL",
    "innodb-flush-log-at-trx-commit": "0",
}
SYSTEM_FOLDERS = ("/usr/sbin", "/usr/bin", "/usr/local/bin")


class EmbeddedMariaDB(EmbeddedServer):
    """One server with a row binlog and password logins only.

    Port and password stay the same over ``stop`` and ``start``. ``settings`` are server options added to ``SETTINGS``.
    Raises ``NotInstalled`` (ENV016) if MariaDB is not installed.
    """

    name = "MariaDB"
    user = USER

    # Without sync calls, a killed server loses no data; only a power failure would, and the folder is temporary.
    default_settings: ClassVar[Mapping[str, str]] = {**SETTINGS, "ssl": "OFF", "debug-no-sync": "1"}

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self.program = self._find_program()
        super().__init__(run_as())
        self.settings = {**self.default_settings, **(settings or {})}
        (self.port,) = free_ports(1)
        self.password = secrets.token_urlsafe(16)
        self.data, self.temporary = self.folder / "data", self.folder / "tmp"

    def _command(self) -> list[str]:
        if not self.data.exists():
            self._create()
        options = {
            "datadir": str(self.data),
            "tmpdir": str(self.temporary),
            "socket": str(self.folder / "socket"),
            "pid-file": str(self.folder / "pid"),
            "bind-address": HOST,
            "port": str(self.port),
            "init-file": str(self.folder / "init.sql"),
            **self.settings,
        }
        return [self.program, "--no-defaults", *(f"--{name}={value}" for name, value in options.items())]

    def _is_ready(self) -> bool:
        """The port opens after the init file has run, so the password is set by then."""
        return is_open(self.port)

    def _find_program(self) -> str:
        return binary("mariadbd")

    def _create(self) -> None:
        # The server runs this file at each start; only its user can read the folder.
        self._private(
            "init.sql",
            f"ALTER USER 'root'@'localhost' IDENTIFIED BY '{self.password}';\n"
            f"CREATE USER IF NOT EXISTS 'root'@'{HOST}' IDENTIFIED BY '{self.password}';\n"
            f"GRANT ALL ON *.* TO 'root'@'{HOST}' WITH GRANT OPTION;\n",
        )
        self.temporary.mkdir()
        for folder in (self.folder, self.temporary):
            self._give_to_server(folder)
        created = subprocess.run(self._create_data(), cwd="/", capture_output=True, text=True, **self._run_as)
        if created.returncode != 0:
            output = created.stdout + created.stderr
            raise CheckFailed(start_problem(f"could not create a data folder of {self.name}", self.data, output))

    def _create_data(self) -> list[str]:
        """The command that creates the data folder, with a root user without a password. A server that starts removes
        all temporary tables of its ``tmpdir``, those of another server, too."""
        folders = [f"--datadir={self.data}", f"--tmpdir={self.temporary}"]
        options = ["--auth-root-authentication-method=normal", "--skip-test-db", *folders]
        return [binary("mariadb-install-db"), "--no-defaults", *options]


def binary(name: str) -> str:
    """The path of a program of the package. Raises NotInstalled (ENV016)."""
    path = shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), *SYSTEM_FOLDERS)))
    if path is None:
        raise NotInstalled.of(
            "ENV016",
            "no MariaDB server on this machine",
            where="PATH",
            found=f"no program {name}",
            do="sudo apt-get install mariadb-server",
        )
    return path


def run_as() -> RunAs:
    return unprivileged("mysql")
