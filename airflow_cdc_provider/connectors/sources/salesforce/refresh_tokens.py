"""The current refresh token. Salesforce may replace it at every login, which invalidates the previous one."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from airflow_cdc_provider.connectors.sources.salesforce.access import Access
from airflow_cdc_provider.core.errors import CheckFailed


@dataclass(frozen=True)
class StoredToken:
    """``token`` is the current token. ``file`` stores its replacement, if the connection sets one."""

    access: Access
    token: str = field(repr=False)
    file: Path | None = None

    def replace(self, renewed: str) -> None:
        """The token is on disk when this returns. Raises CheckFailed (CON014) if it cannot be stored."""
        if self.file is None:
            raise CheckFailed.of(
                "CON014",
                "the app rotates refresh tokens, and the connection has no file to store them",
                where=f"connection {self.access.connection_id}",
                found="refresh token rotation is on, and no `refresh_token_file`",
                do="add `refresh_token_file`, a file that all workers share, to the extra of the connection, or"
                " disable refresh token rotation for this app; then authorise the app again",
            )
        stored = {"after": _digest(self.access.refresh_token), "token": renewed}
        with _file_errors(self.access):
            _write(self.file, json.dumps(stored))


@contextmanager
def stored_token(access: Access) -> Iterator[StoredToken]:
    """The newest token. With a file, no other process can log in while the context is open. A token that was put into
    the connection after the file was written replaces the file's. Raises CheckFailed (CON014) if the file cannot be
    used."""
    if not access.refresh_token_file:
        yield StoredToken(access, access.refresh_token)
        return
    file = Path(access.refresh_token_file)
    with ExitStack() as stack:
        with _file_errors(access):
            lock = stack.enter_context(open(_open_private(file.with_suffix(".lock")), "w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
            newest = _newest_token(access, file)
        yield StoredToken(access, newest, file)


def _newest_token(access: Access, file: Path) -> str:
    if not file.exists():
        return access.refresh_token
    stored = json.loads(file.read_text())
    return str(stored["token"]) if stored["after"] == _digest(access.refresh_token) else access.refresh_token


def _write(file: Path, text: str) -> None:
    """Atomic and durable."""
    new = file.with_suffix(".new")
    with open(_open_private(new), "w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _open_private(file: Path) -> int:
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)


@contextmanager
def _file_errors(access: Access) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckFailed.of(
            "CON014",
            "the refresh token file cannot be used",
            where=f"connection {access.connection_id}, {access.refresh_token_file}",
            found=type(error).__name__,
            allowed="a file, which may not exist yet, in a folder that the workers' user can write to",
            do="correct the folder's permissions; if the file is damaged, remove it and authorise the app again",
        ) from error


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
