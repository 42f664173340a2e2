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

LONGEST_STATEMENT_S = 604_800
"""The most that Snowflake allows. The limit of a warehouse counts if it is lower."""

TEXTS: dict[str, str | int | bool] = {
    "TIMEZONE": "UTC",
    "BINARY_INPUT_FORMAT": "HEX",
    "BINARY_OUTPUT_FORMAT": "HEX",
    "DATE_INPUT_FORMAT": "YYYY-MM-DD",
    "DATE_OUTPUT_FORMAT": "YYYY-MM-DD",
    "TIME_INPUT_FORMAT": "AUTO",
    "TIME_OUTPUT_FORMAT": "HH24:MI:SS.FF6",
    "TIMESTAMP_INPUT_FORMAT": "AUTO",
    "TIMESTAMP_OUTPUT_FORMAT": "YYYY-MM-DD HH24:MI:SS.FF6",
    "TIMESTAMP_LTZ_OUTPUT_FORMAT": "YYYY-MM-DD HH24:MI:SS.FF6 TZHTZM",
    "TIMESTAMP_NTZ_OUTPUT_FORMAT": "YYYY-MM-DD HH24:MI:SS.FF6",
    "TIMESTAMP_TZ_OUTPUT_FORMAT": "YYYY-MM-DD HH24:MI:SS.FF6 TZHTZM",
    "TIMESTAMP_TYPE_MAPPING": "TIMESTAMP_NTZ",
    "CLIENT_TIMESTAMP_TYPE_MAPPING": "TIMESTAMP_NTZ",
    "TIMESTAMP_DAY_IS_ALWAYS_24H": False,
    "TWO_DIGIT_CENTURY_START": 1970,
    "JSON_INDENT": 2,
    "STRICT_JSON_OUTPUT": False,
}
"""Values as text, and as the client binds them."""

STATEMENTS: dict[str, str | int | bool] = {
    "AUTOCOMMIT": False,
    "TRANSACTION_ABORT_ON_ERROR": False,
    "TRANSACTION_DEFAULT_ISOLATION_LEVEL": "READ COMMITTED",
    "MULTI_STATEMENT_COUNT": 1,
    "QUOTED_IDENTIFIERS_IGNORE_CASE": False,
    "CLIENT_RESULT_COLUMN_CASE_INSENSITIVE": False,
    "SEARCH_PATH": "$current, $public",
    "ERROR_ON_NONDETERMINISTIC_MERGE": True,
    "ERROR_ON_NONDETERMINISTIC_UPDATE": True,
    "UNSUPPORTED_DDL_ACTION": "IGNORE",
    "DEFAULT_NULL_ORDERING": "LAST",
    "WEEK_START": 0,
    "WEEK_OF_YEAR_POLICY": 0,
}
"""What a statement means. The wait for a lock goes on in the transaction in which a statement has failed."""

LIMITS: dict[str, str | int | bool] = {
    "ROWS_PER_RESULTSET": 0,
    "STATEMENT_TIMEOUT_IN_SECONDS": LONGEST_STATEMENT_S,
    "STATEMENT_QUEUED_TIMEOUT_IN_SECONDS": 0,
    "LOCK_TIMEOUT": LOCK_TRY_S,
    "HYBRID_TABLE_LOCK_TIMEOUT": LOCK_TRY_S,
    "ABORT_DETACHED_QUERY": False,
}
"""How many rows a result has, and how long a statement may take."""

SETTINGS: dict[str, str | int | bool] = {
    **TEXTS,
    **STATEMENTS,
    **LIMITS,
    "PYTHON_CONNECTOR_QUERY_RESULT_FORMAT": "ARROW",
    "CLIENT_TELEMETRY_ENABLED": False,
}
"""An account or a user can set each of them, so none may be inherited."""


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
