"""The refresh token of now. Salesforce may replace it at every login; the one before it is void from then on."""

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
from airflow_cdc_provider.core.errors import CheckFailed, Problem


@dataclass(frozen=True)
class StoredToken:
    """``token`` is to be used. ``file`` is where its successor goes, where there is such a place."""

    access: Access
    token: str = field(repr=False)
    file: Path | None = None

    def replace(self, renewed: str) -> None:
        """Stands on disk when this returns. Raises CheckFailed (CON014) where there is no place for it."""
        if self.file is None:
            raise CheckFailed(
                Problem(
                    "CON014",
                    "the app gives a new refresh token at every login, and there is no place to keep it",
                    where=f"connection {self.access.connection_id}",
                    found="refresh token rotation is on",
                    do="add `refresh_token_file`, a file that all workers share, to the extra of the connection, or"
                    " switch rotation off for this app; then authorise it anew",
                )
            )
        kept = {"after": _digest(self.access.refresh_token), "token": renewed}
        with _usable(self.access):
            _write(self.file, json.dumps(kept))


@contextmanager
def stored_token(access: Access) -> Iterator[StoredToken]:
    """The newest token. With a file nobody else logs in before this is left. A token that was put into the connection
    since the file was written is newer than the file's. Raises CheckFailed (CON014) where the file is of no use."""
    if not access.refresh_token_file:
        yield StoredToken(access, access.refresh_token)
        return
    file = Path(access.refresh_token_file)
    with ExitStack() as stack:
        with _usable(access):
            lock = stack.enter_context(open(_private(file.with_suffix(".lock")), "w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
            newest = _newest(access, file)
        yield StoredToken(access, newest, file)


def _newest(access: Access, file: Path) -> str:
    if not file.exists():
        return access.refresh_token
    kept = json.loads(file.read_text())
    return str(kept["token"]) if kept["after"] == _digest(access.refresh_token) else access.refresh_token


def _write(file: Path, text: str) -> None:
    """Whole and on disk, or not at all."""
    new = file.with_suffix(".new")
    with open(_private(new), "w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _private(file: Path) -> int:
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)


@contextmanager
def _usable(access: Access) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckFailed(
            Problem(
                "CON014",
                "the file of the refresh token cannot be used",
                where=f"connection {access.connection_id}, {access.refresh_token_file}",
                found=type(error).__name__,
                allowed="a file, or none yet, in a folder that the user of the workers may write to",
                do="mend the folder's rights; where the file is damaged, remove it and authorise the app anew",
            )
        ) from error


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
