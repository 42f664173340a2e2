"""The MariaDB server of the tests; with ``MYSQLD`` set, MySQL in its place."""

from __future__ import annotations

import os
from typing import Any

import pytest

from airflow_cdc_provider.connectors.sources.mysql.proofs import can_hash
from airflow_cdc_provider.core.errors import NotInstalled
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.mysql import PROGRAM, EmbeddedMySQL

IS_MYSQL = PROGRAM in os.environ
mariadb_only = pytest.mark.skipif(IS_MYSQL, reason="of MariaDB alone")
mysql_only = pytest.mark.skipif(not IS_MYSQL, reason=f"needs a MySQL: {PROGRAM} is not set")
TLS = {"tls_version": "TLSv1.3"} if IS_MYSQL else {"ssl": "ON"}
"""Servers have no TLS by default: a test that loses messages must see them."""
WITHOUT_NAMES = "MINIMAL" if IS_MYSQL else "NO_LOG"
"""The value of ``binlog_row_metadata`` without names of columns."""


def embedded(**settings: str) -> EmbeddedMariaDB:
    """Where the server is not installed: skipped on a laptop, failed in CI."""
    server = EmbeddedMySQL if IS_MYSQL else EmbeddedMariaDB
    try:
        return server({name.replace("_", "-"): value for name, value in settings.items()})
    except NotInstalled as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


def give_md5(connection: Any) -> None:
    """Since 9.6, MySQL has the function in a component."""
    if not can_hash(connection):
        connection.cursor().execute("INSTALL COMPONENT 'file://component_classic_hashing'")


def series(count: int) -> str:
    """A derived table with the numbers 1 to ``count`` in the column ``seq``."""
    digits = range(len(str(count)))
    ten = " UNION ALL ".join(f"SELECT {digit} AS d" for digit in range(10))
    number = " + ".join(["1", *(f"{10**digit} * d{digit}.d" for digit in digits)])
    tables = ", ".join(f"({ten}) d{digit}" for digit in digits)
    return f"(SELECT {number} AS seq FROM {tables} WHERE {number} <= {count}) numbers"
