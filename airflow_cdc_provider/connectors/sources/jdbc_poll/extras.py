"""Allowed extras of a connection, per driver of a polled database. None are allowed for an unknown driver: its options
may load code, run statements or read files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_cdc_provider.core.connections import mysql_access, postgres_access
from airflow_cdc_provider.core.connections.allowed_extras import allowed_options, option_not_allowed
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.tls import not_verified
from airflow_cdc_provider.core.errors import Problem

POSTGRES = frozenset({"postgresql", "postgresql+psycopg", "postgresql+psycopg2"})
MYSQL = frozenset({"mysql+pymysql", "mariadb+pymysql"})
ODBC = frozenset({"mssql", "mssql+pyodbc"})
ORACLE = frozenset({"oracle", "oracle+cx_oracle", "oracle+oracledb"})

ODBC_DRIVER, ODBC_TRUST = "driver", "TrustServerCertificate"
ODBC_ALLOWED = frozenset(
    {ODBC_DRIVER, ODBC_TRUST, "ApplicationIntent", "Encrypt", "HostNameInCertificate", "MultiSubnetFailover"}
)
DRIVER_NAME = re.compile(r"[A-Za-z][\w .()-]*")
"""The name of an installed driver, not the path of a library."""
WORD = re.compile(r"[\w.$*-]+")


@dataclass(frozen=True)
class Extra:
    """``query`` is part of the URL, ``arguments`` are passed to the driver."""

    query: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)


def read_extra(driver: str, connection: ConnectionInfo) -> Extra:
    """Raises CheckFailed (CON040) if the extra has a key or value that is not allowed."""
    if driver in POSTGRES:
        return Extra({name: str(value) for name, value in postgres_access.libpq_parameters(connection).items()})
    if driver in MYSQL:
        tls = mysql_access.mysql_tls(connection)
        return Extra(arguments={"ssl": tls.context()} if tls else {})
    if driver in ODBC:
        return Extra(_odbc(connection))
    given = allowed_options(connection, frozenset({"service_name"}) if driver in ORACLE else frozenset())
    return Extra({name: _word(connection, name, value) for name, value in given.items()})


def tls_warnings(driver: str, connection: ConnectionInfo) -> list[Problem]:
    if driver in POSTGRES:
        return postgres_access.tls_warnings(connection)
    if driver in MYSQL:
        return mysql_access.tls_warnings(connection)
    if driver in ODBC and _odbc(connection).get(ODBC_TRUST) == "yes":
        return [not_verified(connection.connection_id, f"{ODBC_TRUST}: yes", f"leave `{ODBC_TRUST}` out")]
    return []


def _odbc(connection: ConnectionInfo) -> dict[str, str]:
    given = allowed_options(connection, ODBC_ALLOWED)
    parameters = {name: _word(connection, name, value) for name, value in given.items() if name != ODBC_DRIVER}
    if parameters.get(ODBC_TRUST, "no") not in ("yes", "no"):
        raise option_not_allowed(
            connection, f"{ODBC_TRUST} that is neither yes nor no", f"{ODBC_TRUST}: yes, {ODBC_TRUST}: no"
        )
    if ODBC_DRIVER in given:
        if not DRIVER_NAME.fullmatch(str(given[ODBC_DRIVER])):
            raise option_not_allowed(connection, "a driver that is not a name", "driver: ODBC Driver 18 for SQL Server")
        parameters[ODBC_DRIVER] = str(given[ODBC_DRIVER])
    return parameters


def _word(connection: ConnectionInfo, name: str, value: Any) -> str:
    if not WORD.fullmatch(str(value)):
        raise option_not_allowed(
            connection, f"{name} that is not one word", f"{name}: letters, digits, `_`, `.`, `$`, `*`, `-`"
        )
    return str(value)
