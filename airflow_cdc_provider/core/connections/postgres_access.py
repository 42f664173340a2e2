"""Options of a connection to a PostgreSQL server, read the same way for source, target, polled tables and Spark.

``sslmode: require`` is verified like ``verify-full``; libpq itself would accept any certificate.
"""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.core.connections.allowed_extras import (
    allowed_options,
    boolean_option,
    file_path_option,
    option_not_allowed,
)
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.tls import VERIFY, host_authorities, not_verified
from airflow_cdc_provider.core.errors import Problem

MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
REQUIRE, VERIFY_CA, VERIFY_FULL = MODES[3:]
AUTHORITY, SYSTEM = "sslrootcert", "system"
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
"""The allowed options of libpq. Not allowed: those that read passwords or options from files (``passfile``,
``service``), redirect the session (``host``, ``hostaddr``, ``dbname``) or change session settings on which exact
copies depend (``options``)."""
AIRFLOWS_OWN = frozenset({"cursor", "enable_log_db_messages"})
JDBC = {"sslmode": "sslmode", AUTHORITY: AUTHORITY, "gssencmode": "gssEncMode"}
"""Options that the JDBC driver has, too. Its format for keys differs from libpq's, so they are omitted."""


def libpq_parameters(connection: ConnectionInfo) -> dict[str, Any]:
    """Raises CheckFailed (CON040) if the extra contains an option or value that is not allowed."""
    options = _read_options(connection)
    verify = options.pop(VERIFY, True)
    if options.get("sslmode") == REQUIRE and verify:
        options["sslmode"] = VERIFY_FULL
    if options.get("sslmode") in (VERIFY_CA, VERIFY_FULL) and options.get(AUTHORITY, SYSTEM) == SYSTEM:
        options[AUTHORITY] = host_authorities() or SYSTEM
    return options


def jdbc_parameters(connection: ConnectionInfo) -> dict[str, str]:
    return {JDBC[name]: str(value) for name, value in libpq_parameters(connection).items() if name in JDBC}


def tls_warnings(connection: ConnectionInfo) -> list[Problem]:
    options, name = _read_options(connection), connection.connection_id
    if not options.get(VERIFY, True):
        do = f"remove `{VERIFY}`, and name the server's certificate authority in `{AUTHORITY}`"
        return [not_verified(name, f"{VERIFY}: false", do)]
    if options.get("sslmode") == VERIFY_CA:
        what = f"sslmode: {VERIFY_CA}, which accepts the certificate of any server of that authority"
        return [not_verified(name, what, f"sslmode: {VERIFY_FULL}")]
    return []


def _read_options(connection: ConnectionInfo) -> dict[str, Any]:
    options = allowed_options(connection, ALLOWED, AIRFLOWS_OWN)
    for name in FILES:
        if name in options and (name, options[name]) != (AUTHORITY, SYSTEM):
            options[name] = file_path_option(connection, name, options[name])
    mode = options.setdefault("sslmode", REQUIRE) if options.keys() & FILES else options.get("sslmode")
    if mode not in (None, *MODES):
        raise option_not_allowed(connection, "an sslmode that does not exist", ", ".join(MODES))
    if VERIFY in options:
        options[VERIFY] = boolean_option(connection, VERIFY, options[VERIFY])
        if not options[VERIFY] and (mode != REQUIRE or AUTHORITY in options):
            found = f"{VERIFY}: false, together with an option that verifies"
            raise option_not_allowed(connection, found, f"{VERIFY}: false with sslmode: {REQUIRE} and no {AUTHORITY}")
    return options
