"""Sessions with Snowflake: who logs in, and with which settings."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow_cdc_provider.core.connections.allowed_extras import (
    allowed_options,
    file_path_option,
    option_not_allowed,
)
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.tls import not_verified
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.registry import load_library
from airflow_cdc_provider.targets.snowflake.options import SnowflakeOptions
from airflow_cdc_provider.targets.snowflake.sql import exactly

LOGIN_LIMIT_S, NETWORK_LIMIT_S = 30, 300
LOCK_TRY_S = 15
"""How long one statement waits for a lock."""

OPTIONS = frozenset({"account", "warehouse", "role", "region", "host", "protocol", "authenticator", "token"})
KEY_OPTIONS = frozenset({"private_key_file", "private_key_content"})
AUTHENTICATORS = frozenset({"snowflake", "snowflake_jwt", "oauth", "programmatic_access_token"})
"""Ways to log in without a person and without another server."""

IGNORED = frozenset({"database", "session_parameters", "insecure_mode", "ocsp_fail_open", "application"})
"""Keys of Airflow's own hook that have no effect here."""

PLAIN = re.compile("[A-Z_][A-Z0-9_$]*")

SETTINGS: dict[str, str | int | bool] = {
    "TIMEZONE": "UTC",
    "LOCK_TIMEOUT": LOCK_TRY_S,
    "BINARY_INPUT_FORMAT": "HEX",
    "DATE_INPUT_FORMAT": "YYYY-MM-DD",
    "TIMESTAMP_INPUT_FORMAT": "AUTO",
    "ERROR_ON_NONDETERMINISTIC_UPDATE": True,
    "CLIENT_TELEMETRY_ENABLED": False,
}


def account(connection: ConnectionInfo) -> str:
    return str(connection.extra.get("account") or connection.host)


def address(connection: ConnectionInfo) -> str:
    """Account and user, for error messages."""
    return f"Snowflake account {account(connection)} as {connection.login}"


def tls_warnings(connection: ConnectionInfo) -> list[Problem]:
    if connection.extra.get("protocol", "https") == "https":
        return []
    do = "remove `protocol` from the extra of the connection"
    return [not_verified(connection.connection_id, "protocol: http", do)]


@contextmanager
def open_session(connection: ConnectionInfo, options: SnowflakeOptions, query_tag: str) -> Iterator[Any]:
    """A session without autocommit."""
    session = library().connect(
        **login(connection),
        database=identifier(options.database),
        schema=identifier(options.schema),
        autocommit=False,
        login_timeout=LOGIN_LIMIT_S,
        network_timeout=NETWORK_LIMIT_S,
        session_parameters=SETTINGS | {"QUERY_TAG": query_tag},
    )
    try:
        yield session
    finally:
        session.close()


def identifier(name: str) -> str:
    """In quotes only if needed."""
    return name if PLAIN.fullmatch(name) else exactly(name)


def login(connection: ConnectionInfo) -> dict[str, Any]:
    """The parameters of the connector. Raises CheckFailed (CON040) for other keys of the extra."""
    given = allowed_options(connection, OPTIONS | KEY_OPTIONS, IGNORED)
    authenticator = str(given.get("authenticator", "snowflake")).lower()
    if authenticator not in AUTHENTICATORS:
        raise option_not_allowed(connection, f"authenticator: {authenticator}", ", ".join(sorted(AUTHENTICATORS)))
    parameters: dict[str, Any] = {name: value for name, value in given.items() if name in OPTIONS}
    parameters |= {"account": account(connection), "user": connection.login}
    if connection.port:
        parameters["port"] = connection.port
    if KEY_OPTIONS & given.keys():
        return parameters | {"private_key": private_key(connection, given), "authenticator": "SNOWFLAKE_JWT"}
    return parameters | ({"password": connection.password} if connection.password else {})


def private_key(connection: ConnectionInfo, given: dict[str, Any]) -> bytes:
    """In DER. The password of the connection decrypts it."""
    from cryptography.hazmat.primitives import serialization

    content = str(given.get("private_key_content", ""))
    if content:
        pem = content.encode() if content.lstrip().startswith("-----BEGIN") else b64decode(content)
    else:
        with open(file_path_option(connection, "private_key_file", given["private_key_file"]), "rb") as file:
            pem = file.read()
    key = serialization.load_pem_private_key(pem, connection.password.encode() or None)
    return key.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def library() -> Any:
    return load_library("snowflake.connector", "target", "snowflake")
