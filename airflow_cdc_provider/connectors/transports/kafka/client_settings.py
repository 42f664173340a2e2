"""Converts an Airflow connection of type ``kafka`` to settings of the client library.

Only listed settings are allowed, because some of the library load code (``plugin.library.paths``,
``ssl.engine.location``, ``ssl.providers``) or run a shell command (``sasl.kerberos.kinit.cmd``, which contains
``principal`` and ``keytab``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.core.connections.allowed_extras import FILE
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.tls import LOOPBACK_URL, not_verified
from airflow_cdc_provider.core.errors import CheckFailed, Problem

SERVERS, PROTOCOL = "bootstrap.servers", "security.protocol"
VERIFICATION, NAMES = "enable.ssl.certificate.verification", "ssl.endpoint.identification.algorithm"
WORD = re.compile(r"[\w./@-]+")
PATTERNS: Mapping[str, re.Pattern[str]] = {
    "sasl.kerberos.keytab": FILE,
    **dict.fromkeys(("sasl.kerberos.principal", "sasl.kerberos.service.name"), WORD),
    **dict.fromkeys(
        (
            "ssl.ca.location",
            "ssl.certificate.location",
            "ssl.crl.location",
            "ssl.key.location",
            "ssl.keystore.location",
            "https.ca.location",
        ),
        re.compile(FILE.pattern + "|probe"),
    ),
    "sasl.oauthbearer.token.endpoint.url": re.compile(rf"https://\S+|{LOOPBACK_URL.pattern}"),
}
"""Allowed values of settings with which the library opens a file, runs a command or calls a server."""
ALLOWED = frozenset(
    {
        *PATTERNS,
        SERVERS,
        PROTOCOL,
        VERIFICATION,
        NAMES,
        "check.crcs",
        "client.rack",
        "https.ca.pem",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.extensions",
        "sasl.oauthbearer.method",
        "sasl.oauthbearer.scope",
        "sasl.password",
        "sasl.username",
        "ssl.ca.pem",
        "ssl.certificate.pem",
        "ssl.cipher.suites",
        "ssl.curves.list",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.password",
        "ssl.sigalgs.list",
    }
)
ALLOWED_PREFIXES = ("socket.", "broker.", "metadata.", "api.version.", "fetch.", "reconnect.")
"""Settings with numeric values."""
UNDER_TLS = ("ssl", "sasl_ssl")


def client_settings(connection: ConnectionInfo) -> dict[str, str]:
    """Login and password of the connection are those of SASL; host and port are a server. Raises CheckFailed (CON030)
    for settings that are not allowed."""
    settings = {str(name): _text(value) for name, value in connection.extra.items() if value not in (None, "")}
    settings.pop("group.id", None)  # Airflow's own hook requires one; this connector uses no consumer groups
    unknown = sorted(name for name in settings if not _is_allowed(name))
    if unknown:
        prefixes = ", ".join(f"{prefix}…" for prefix in ALLOWED_PREFIXES)
        raise _bad_settings(connection, f"settings {', '.join(unknown)}", f"{', '.join(sorted(ALLOWED))}, {prefixes}")
    invalid = sorted(name for name, text in settings.items() if not _is_valid(name, text))
    if invalid:
        allowed = "absolute paths without `..`, https:// URLs, names without blanks and shell metacharacters"
        raise _bad_settings(connection, f"invalid values of {', '.join(invalid)}", allowed)
    tls = sorted(name for name in settings if name.startswith("ssl."))
    if tls and settings.get(PROTOCOL, "").lower() not in UNDER_TLS:
        raise _bad_settings(connection, f"{', '.join(tls)} without TLS", f"{PROTOCOL}: SSL, {PROTOCOL}: SASL_SSL")
    if SERVERS not in settings and connection.host:
        settings[SERVERS] = f"{connection.host}:{connection.port or 9092}"
    if SERVERS not in settings:
        raise _bad_settings(connection, "no servers", f"{SERVERS} in the extra, or a host")
    if connection.login:
        settings |= {"sasl.username": connection.login, "sasl.password": connection.password}
    return settings


def tls_warnings(connection: ConnectionInfo) -> list[Problem]:
    """The library verifies brokers unless a setting disables it."""
    settings = client_settings(connection)
    disabled = {VERIFICATION: "false", NAMES: "none"}
    found = [f"{name}: {value}" for name, value in disabled.items() if settings.get(name, "").lower() == value]
    if not found or settings.get(PROTOCOL, "").lower() not in UNDER_TLS:
        return []
    do = "remove it, and set `ssl.ca.location` to the certificate authority of the brokers"
    return [not_verified(connection.connection_id, ", ".join(found), do)]


def _is_allowed(name: str) -> bool:
    return name in ALLOWED or name.startswith(ALLOWED_PREFIXES)


def _is_valid(name: str, text: str) -> bool:
    return name not in PATTERNS or (PATTERNS[name].fullmatch(text) is not None and ".." not in text.split("/"))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def broker_address(settings: Mapping[str, str]) -> str:
    return f"Kafka at {settings[SERVERS]}"


def _bad_settings(connection: ConnectionInfo, found: str, allowed: str) -> CheckFailed:
    return CheckFailed.of(
        "CON030",
        "the connection of a Kafka cluster has settings that are not allowed or not valid",
        where=f"extra of connection {connection.connection_id}",
        found=found,
        allowed=allowed,
        do="correct the extra of the connection",
    )
