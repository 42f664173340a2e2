"""What a connection to a PostgreSQL server says beside host and login: one reading for source, target, polled tables
and Spark.

``sslmode: require`` asks for TLS, and what is asked for is verified: by itself libpq would take any certificate.
"""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.core.connections.allowed_extras import file_path, flag, followed, refused
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.tls import VERIFY, host_authorities, not_verified
from airflow_cdc_provider.core.errors import Problem

MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
REQUIRED, NAMELESS, WHOLE = MODES[3:]
AUTHORITY, HOSTS_OWN = "sslrootcert", "system"
FILES = (AUTHORITY, "sslcert", "sslkey", "sslcrl", "sslcrldir")
ALLOWED = frozenset(
    {
        *FILES,
        VERIFY,
        "channel_binding",
        "connect_timeout",
        "gssencmode",
        "keepalives",
        "keepalives_count",
        "keepalives_idle",
        "keepalives_interval",
        "require_auth",
        "ssl_max_protocol_version",
        "ssl_min_protocol_version",
        "sslmode",
        "sslnegotiation",
        "sslpassword",
        "sslsni",
        "target_session_attrs",
        "tcp_user_timeout",
    }
)
"""Of libpq's options. Left out: those that read passwords or options from files (``passfile``, ``service``), send the
session somewhere else (``host``, ``hostaddr``, ``dbname``) or set what exactness rests on (``options``)."""
AIRFLOWS_OWN = frozenset({"cursor", "enable_log_db_messages"})
JDBC = {"sslmode": "sslmode", AUTHORITY: AUTHORITY, "gssencmode": "gssEncMode"}
"""Options that the JDBC driver knows, too. It wants keys in another format than libpq does."""


def libpq_parameters(connection: ConnectionInfo) -> dict[str, Any]:
    """Raises CheckFailed (CON040) where the extra says what is not allowed."""
    given = _read(connection)
    verify = given.pop(VERIFY, True)
    if given.get("sslmode") == REQUIRED and verify:
        given["sslmode"] = WHOLE
    if given.get("sslmode") in (NAMELESS, WHOLE) and given.get(AUTHORITY, HOSTS_OWN) == HOSTS_OWN:
        given[AUTHORITY] = host_authorities() or HOSTS_OWN
    return given


def jdbc_parameters(connection: ConnectionInfo) -> dict[str, str]:
    return {JDBC[name]: str(value) for name, value in libpq_parameters(connection).items() if name in JDBC}


def unverified(connection: ConnectionInfo) -> list[Problem]:
    given, name = _read(connection), connection.connection_id
    if not given.get(VERIFY, True):
        do = f"leave `{VERIFY}` out, and name the server's authority by `{AUTHORITY}`"
        return [not_verified(name, f"{VERIFY}: false", do)]
    if given.get("sslmode") == NAMELESS:
        what = f"sslmode: {NAMELESS}, which takes the certificate of any server of that authority"
        return [not_verified(name, what, f"sslmode: {WHOLE}")]
    return []


def _read(connection: ConnectionInfo) -> dict[str, Any]:
    given = followed(connection, ALLOWED, AIRFLOWS_OWN)
    for name in FILES:
        if name in given and (name, given[name]) != (AUTHORITY, HOSTS_OWN):
            given[name] = file_path(connection, name, given[name])
    mode = given.setdefault("sslmode", REQUIRED) if given.keys() & FILES else given.get("sslmode")
    if mode not in (None, *MODES):
        raise refused(connection, "an sslmode that does not exist", ", ".join(MODES))
    if VERIFY in given:
        given[VERIFY] = flag(connection, VERIFY, given[VERIFY])
        if not given[VERIFY] and (mode != REQUIRED or AUTHORITY in given):
            found = f"{VERIFY}: false, and what it would be verified by"
            raise refused(connection, found, f"{VERIFY}: false with sslmode: {REQUIRED} and no {AUTHORITY}")
    return given
