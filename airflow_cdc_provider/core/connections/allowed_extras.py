"""What may stand in the extra of a connection: an allow-list for each kind of system.

Drivers take options that load code, run statements or read files of the host (``init_command``, ``read_default_file``,
``service``). Whoever may edit a connection is not thereby somebody who may do that on a worker.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Any

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed, Problem

FILE = re.compile(r"/[\w./+@=~-]+")


def followed(connection: ConnectionInfo, allowed: Set[str], ignored: Set[str] = frozenset()) -> dict[str, Any]:
    """The keys that say something. ``ignored``: what only Airflow's own hook of this kind of connection reads. Raises
    CheckFailed (CON040) for every other key at once."""
    given = {str(name): value for name, value in connection.extra.items() if value not in (None, "")}
    unknown = sorted(given.keys() - allowed - ignored)
    if unknown:
        raise refused(connection, ", ".join(unknown), ", ".join(sorted(allowed)) or "no key at all")
    return {name: value for name, value in given.items() if name in allowed}


def refused(connection: ConnectionInfo, found: str, allowed: str) -> CheckFailed:
    return CheckFailed(
        Problem(
            "CON040",
            "the extra of a connection says what is not allowed there",
            where=f"extra of connection {connection.connection_id}",
            found=found,
            allowed=allowed,
            do="mend the extra of the connection",
        )
    )


def flag(connection: ConnectionInfo, key: str, value: Any) -> bool:
    text = str(value).lower()
    if text not in ("true", "false"):
        raise refused(connection, f"{key} that is neither true nor false", f"{key}: true, {key}: false")
    return text == "true"


def file_path(connection: ConnectionInfo, key: str, value: Any) -> str:
    """Libraries take a colon for the name of a module that brings the key, URLs of JDBC take much for their own."""
    text = str(value)
    if not FILE.fullmatch(text) or ".." in text.split("/"):
        raise refused(connection, f"{key} that is no plain absolute path", f"{key}: /folder/file, without `..`")
    return text
