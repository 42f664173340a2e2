"""The file with the secrets of one driver on this worker: mode 0600 in a 0700 folder; the driver deletes it on read."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.serde import to_plain

FOLDER_PREFIX = "cdc-secrets-"


def write(secrets: Secrets) -> Path:
    path = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX), "secrets.json")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        json.dump(to_plain(secrets), file)
    return path


def remove(path: Path) -> None:
    """Remove the file, if the driver has not, and its folder. A path that ``write`` did not create is ignored."""
    if not path.parent.name.startswith(FOLDER_PREFIX) or path.parent.parent != Path(tempfile.gettempdir()):
        return
    path.unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        path.parent.rmdir()
