"""Allow-lists for the extra of a connection.

Drivers accept options that load code, run statements or read files of the host (``init_command``,
``read_default_file``, ``service``). The right to edit a connection must not imply these rights on a worker.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Any

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed

FILE = re.compile(r"/[\w./+@=~-]+")


def allowed_options(connection: ConnectionInfo, allowed: Set[str], ignored: Set[str] = frozenset()) -> dict[str, Any]:
    """The allowed keys that have a value. ``ignored``: keys that only Airflow's own hook reads. Raises CheckFailed
    (CON040), which lists all other keys."""
    given = {str(name): value for name, value in connection.extra.items() if value not in (None, "")}
    unknown = sorted(given.keys() - allowed - ignored)
    if unknown:
        raise option_not_allowed(connection, ", ".join(unknown), ", ".join(sorted(allowed)) or "no key at all")
    return {name: value for name, value in given.items() if name in allowed}


def option_not_allowed(connection: ConnectionInfo, found: str, allowed: str) -> CheckFailed:
    return CheckFailed.of(
        "CON040",
        "the extra of a connection contains an option that is not allowed",
        where=f"extra of connection {connection.connection_id}",
        found=found,
        allowed=allowed,
        do="correct the extra of the connection",
    )


def boolean_option(connection: ConnectionInfo, key: str, value: Any) -> bool:
    text = str(value).lower()
    if text not in ("true", "false"):
        raise option_not_allowed(connection, f"{key} that is neither true nor false", f"{key}: true, {key}: false")
    return text == "true"


def file_path_option(connection: ConnectionInfo, key: str, value: Any) -> str:
    """An absolute path. Other characters are rejected: in some libraries a colon names a module that provides the key,
    and JDBC URLs have their own separators."""
    text = str(value)
    if not FILE.fullmatch(text) or ".." in text.split("/"):
        raise option_not_allowed(
            connection, f"{key} that is no plain absolute path", f"{key}: /folder/file, without `..`"
        )
    return text
