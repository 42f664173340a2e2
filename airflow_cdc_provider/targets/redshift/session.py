"""Sessions with Redshift: who logs in, and with which settings."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow_cdc_provider.core.connections.allowed_extras import (
    allowed_options,
    boolean_option,
    option_not_allowed,
)
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.tls import UNTRUSTED, not_verified, untrusted
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.registry import load_library

DEFAULT_PORT = 5439
CONNECT_LIMIT_S = 30
VERIFY_CA, VERIFY_FULL = "verify-ca", "verify-full"
IAM_OPTIONS = frozenset(
    {
        "access_key_id",
        "cluster_identifier",
        "db_user",
        "region",
        "secret_access_key",
        "serverless_acct_id",
        "serverless_work_group",
        "session_token",
    }
)
FLAGS = frozenset({"iam", "is_serverless", "ssl"})
OPTIONS = FLAGS | IAM_OPTIONS | {"sslmode"}
"""Not allowed: plugins that log in by a browser or another server, and files of profiles."""

IGNORED = frozenset({"aws_conn_id", "serverless_token_duration_seconds", "tcp_keepalive"})
"""Keys of Airflow's own hook that have no effect here."""

SETTINGS = {
    "statement_timeout": "0",
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "extra_float_digits": "2",
    "search_path": "pg_catalog",
    "enable_case_sensitive_identifier": "false",
    "enable_case_sensitive_super_attribute": "false",
    "downcase_delimited_identifier": "on",
    "describe_field_name_in_uppercase": "off",
    "enable_numeric_rounding": "on",
    "cast_super_null_on_error": "true",
    "parse_super_null_on_error": "false",
    "navigate_super_null_on_error": "true",
    "json_serialization_enable": "false",
    "json_serialization_parse_nested_strings": "false",
    "error_on_nondeterministic_update": "true",
}
"""A user can have each of them by ALTER USER, so none may be inherited. Other settings of the configuration reference
concern caches, queues, materialized views, external tables and cursors that we do not use."""


def address(connection: ConnectionInfo) -> str:
    """Server, database and user, for error messages."""
    server = f"{connection.host}:{connection.port or DEFAULT_PORT}"
    return f"Redshift {server}/{connection.schema} as {user(connection)}"


def user(connection: ConnectionInfo) -> str:
    """With IAM the user of the database is not that of a password."""
    return str(connection.extra.get("db_user") or connection.login)


def tls_warnings(connection: ConnectionInfo) -> list[Problem]:
    options, name = _read_options(connection), connection.connection_id
    if not options["ssl"]:
        return [not_verified(name, "ssl: false", "remove `ssl` from the extra of the connection")]
    if options["sslmode"] == VERIFY_CA:
        what = f"sslmode: {VERIFY_CA}, which accepts the certificate of any server of that authority"
        return [not_verified(name, what, f"sslmode: {VERIFY_FULL}")]
    return []


@contextmanager
def open_session(connection: ConnectionInfo, name: str, query_group: str) -> Iterator[Any]:
    """A session without autocommit. ``name``: of the application; ``query_group`` labels its queries."""
    driver = library()
    parameters = login(connection)
    try:
        session = driver.connect(**parameters, application_name=name, timeout=CONNECT_LIMIT_S)
    except driver.InterfaceError as error:
        if UNTRUSTED.search(str(error)):
            raise untrusted(address(connection), connection.connection_id, str(error), "") from error
        raise
    try:
        session._usock.settimeout(None)  # the driver applies the limit of the connection to all that follows
        session.autocommit = True
        cursor = session.cursor()
        for setting, value in (SETTINGS | {"query_group": query_group}).items():
            cursor.execute(f"SET {setting} TO '{value}'")
        session.autocommit = False
        yield session
    finally:
        with contextlib.suppress(driver.Error, OSError):  # of a connection that is lost already
            session.close()


def login(connection: ConnectionInfo) -> dict[str, Any]:
    """The parameters of the driver. Raises CheckFailed (CON040) for other keys of the extra."""
    options = _read_options(connection)
    parameters = {
        **options,
        "host": connection.host,
        "port": connection.port or DEFAULT_PORT,
        "database": connection.schema,
        "user": connection.login,
        "password": connection.password,
    }
    if not options["iam"]:
        return parameters
    return {**parameters, "db_user": user(connection), "user": "", "password": ""}


def library() -> Any:
    return load_library("redshift_connector", "target", "redshift")


def _read_options(connection: ConnectionInfo) -> dict[str, Any]:
    given = allowed_options(connection, OPTIONS, IGNORED)
    flags = {name: boolean_option(connection, name, given.get(name, name == "ssl")) for name in FLAGS}
    iam = {name: str(value) for name, value in given.items() if name in IAM_OPTIONS}
    if iam and not flags["iam"]:
        raise option_not_allowed(connection, ", ".join(sorted(iam)), "these keys with `iam: true` only")
    if flags["iam"] and not flags["ssl"]:
        raise option_not_allowed(connection, "iam: true with ssl: false", "IAM over TLS only")
    mode = str(given.get("sslmode", VERIFY_FULL))
    if mode not in (VERIFY_CA, VERIFY_FULL):
        raise option_not_allowed(connection, "an sslmode that does not verify", f"{VERIFY_FULL}, {VERIFY_CA}")
    return {**flags, **iam, "sslmode": mode}
