"""From an Airflow connection of type ``kafka`` to the settings of the client library.

The library's settings name code (``plugin.library.paths``, ``ssl.engine.location``, ``ssl.providers``) and a command
that goes through a shell (``sasl.kerberos.kinit.cmd``, which is made with ``principal`` and ``keytab``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.core.connections.allowed_extras import FILE
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.tls import not_verified
from airflow_cdc_provider.core.errors import CheckFailed, Problem

SERVERS, PROTOCOL = "bootstrap.servers", "security.protocol"
VERIFICATION, NAMES = "enable.ssl.certificate.verification", "ssl.endpoint.identification.algorithm"
WORD = re.compile(r"[\w./@-]+")
FORMS: Mapping[str, re.Pattern[str]] = {
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
    "sasl.oauthbearer.token.endpoint.url": re.compile(r"https://\S+|http://(127\.0\.0\.1|localhost)[:/]\S*"),
}
"""What may stand where the library opens a file, runs a command or calls somebody."""
ALLOWED = frozenset(
    {
        *FORMS,
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
ALLOWED_BEGINNINGS = ("socket.", "broker.", "metadata.", "api.version.", "fetch.", "reconnect.")
"""Figures, all of them."""
UNDER_TLS = ("ssl", "sasl_ssl")


def client_settings(connection: ConnectionInfo) -> dict[str, str]:
    """What the connection says; login and password are those of SASL, host and port a server. Raises CheckFailed
    (CON030) where it says what we cannot follow."""
    given = {str(name): _text(value) for name, value in connection.extra.items() if value not in (None, "")}
    given.pop("group.id", None)  # Airflow's own hook wants one; we read without groups
    unknown = sorted(name for name in given if not _allowed(name))
    if unknown:
        figures = ", ".join(f"{beginning}…" for beginning in ALLOWED_BEGINNINGS)
        raise _refused(connection, f"settings {', '.join(unknown)}", f"{', '.join(sorted(ALLOWED))}, {figures}")
    misshapen = sorted(name for name, text in given.items() if not _fits(name, text))
    if misshapen:
        allowed = "absolute paths without `..`, https:// URLs, names without blanks and signs of a shell"
        raise _refused(connection, f"values of {', '.join(misshapen)} that are not of their form", allowed)
    files = sorted(name for name in given if name.startswith("ssl."))
    if files and given.get(PROTOCOL, "").lower() not in UNDER_TLS:
        raise _refused(connection, f"{', '.join(files)} without TLS", f"{PROTOCOL}: SSL, {PROTOCOL}: SASL_SSL")
    if SERVERS not in given and connection.host:
        given[SERVERS] = f"{connection.host}:{connection.port or 9092}"
    if SERVERS not in given:
        raise _refused(connection, "no servers", f"{SERVERS} in the extra, or a host")
    if connection.login:
        given |= {"sasl.username": connection.login, "sasl.password": connection.password}
    return given


def unverified(connection: ConnectionInfo) -> list[Problem]:
    """The library verifies what it is not told to leave."""
    given = client_settings(connection)
    off = {VERIFICATION: "false", NAMES: "none"}
    found = [f"{name}: {value}" for name, value in off.items() if given.get(name, "").lower() == value]
    if not found or given.get(PROTOCOL, "").lower() not in UNDER_TLS:
        return []
    do = "leave it out, and name the brokers' authority by `ssl.ca.location`"
    return [not_verified(connection.connection_id, ", ".join(found), do)]


def _allowed(name: str) -> bool:
    return name in ALLOWED or name.startswith(ALLOWED_BEGINNINGS)


def _fits(name: str, text: str) -> bool:
    return name not in FORMS or (FORMS[name].fullmatch(text) is not None and ".." not in text.split("/"))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def broker_address(settings: Mapping[str, str]) -> str:
    return f"Kafka at {settings[SERVERS]}"


def _refused(connection: ConnectionInfo, found: str, allowed: str) -> CheckFailed:
    return CheckFailed(
        Problem(
            "CON030",
            "the connection of a Kafka cluster says what we cannot follow",
            where=f"extra of connection {connection.connection_id}",
            found=found,
            allowed=allowed,
            do="mend the extra of the connection",
        )
    )
