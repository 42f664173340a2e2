"""From an Airflow connection of type ``kafka`` to the settings of the client library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.core.connections import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed, Problem

SERVERS = "bootstrap.servers"
ALLOWED = frozenset({SERVERS, "security.protocol", "enable.ssl.certificate.verification", "check.crcs", "client.rack"})
ALLOWED_BEGINNINGS = ("sasl.", "ssl.", "socket.", "broker.", "metadata.", "api.version.", "fetch.", "reconnect.")
REFUSED = ("ssl.engine", "sasl.oauthbearer.config", "sasl.kerberos.kinit.cmd")
"""They name code or commands to run."""


def client_settings(connection: ConnectionInfo) -> dict[str, str]:
    """What the connection says; login and password are those of SASL, host and port a server. Raises CheckFailed
    (CON030) where it says what we cannot follow."""
    given = {str(name): _text(value) for name, value in connection.extra.items() if value not in (None, "")}
    given.pop("group.id", None)  # Airflow's own hook wants one; we read without groups
    unknown = sorted(name for name in given if not _allowed(name))
    if unknown:
        raise _refused(connection, f"settings {', '.join(unknown)}", f"{', '.join(sorted(ALLOWED))}, ssl.…, sasl.…")
    if SERVERS not in given and connection.host:
        given[SERVERS] = f"{connection.host}:{connection.port or 9092}"
    if SERVERS not in given:
        raise _refused(connection, "no servers", f"{SERVERS} in the extra, or a host")
    if connection.login:
        given |= {"sasl.username": connection.login, "sasl.password": connection.password}
    return given


def _allowed(name: str) -> bool:
    return not name.startswith(REFUSED) and (name in ALLOWED or name.startswith(ALLOWED_BEGINNINGS))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def place(settings: Mapping[str, str]) -> str:
    return f"Kafka at {settings[SERVERS]}"


def _refused(connection: ConnectionInfo, found: str, allowed: str) -> CheckFailed:
    return CheckFailed(
        Problem(
            "CON030",
            "the connection of a Kafka cluster says what we cannot follow",
            where=f"connection {connection.connection_id}",
            found=found,
            allowed=allowed,
            do="mend the extra of the connection",
        )
    )
