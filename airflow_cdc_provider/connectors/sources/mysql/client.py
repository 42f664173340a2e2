"""Sessions with a MySQL or MariaDB server. Its errors are raised as CdcError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.mysql_access import mysql_tls
from airflow_cdc_provider.core.connections.tls import UNTRUSTED, untrusted
from airflow_cdc_provider.core.errors import (
    CdcError,
    CheckFailed,
    NotInstalled,
    PositionLost,
    Problem,
    SourceUnavailable,
)

DEFAULT_PORT = 3306
CONNECT_LIMIT_S = 10
READ_LIMIT_S = 600
PRIVILEGE_ERRORS = frozenset({1044, 1142, 1143, 1227, 1370})
LOGIN_ERRORS = frozenset({1045, 1049, 1698})
BINLOG_READ_ERROR = 1236
POSITION_TEXTS = ("first log file name", "file size", "impossible position", "bogus data", "truncated")
"""Texts of that error when the position does not exist. Others: the reader was disconnected, or memory was short."""

SETTINGS = "SET SESSION time_zone = '+00:00', sql_mode = '', net_write_timeout = 3600"


class MysqlClient:
    """Opens sessions for one replicator, and keeps none open."""

    def __init__(self, info: ConnectionInfo, replicator: str) -> None:
        self.info = info
        self.replicator = replicator

    @property
    def address(self) -> str:
        """The server and login as error messages name them."""
        return f"{self.info.host}:{self.info.port or DEFAULT_PORT} as {self.info.login}"

    @contextmanager
    def session(self, purpose: str, *, unbuffered: bool = False) -> Iterator[Any]:
        """A session in UTC with autocommit. ``unbuffered``: rows are fetched on demand. Raises errors of the server as
        CdcError."""
        pymysql = _pymysql()
        with self.translated_errors():
            try:
                connection = pymysql.connect(
                    **self._parameters(),
                    program_name=f"cdc:{self.replicator}:{purpose}",
                    cursorclass=pymysql.cursors.SSCursor if unbuffered else pymysql.cursors.Cursor,
                )
            except pymysql.OperationalError as error:
                raise self._connection_error(error) from error
            try:
                yield connection
            finally:
                if connection.open:
                    connection.close()

    @contextmanager
    def translated_errors(self) -> Iterator[None]:
        pymysql = _pymysql()
        try:
            yield
        except pymysql.Error as error:
            raise self._translate(error) from error

    def position_lost(self, found: str) -> PositionLost:
        return PositionLost(
            Problem(
                "SRC013",
                "the source no longer has the position that was read last",
                where=self.address,
                found=found,
                allowed="binlog files that are kept until they have been read (binlog_expire_logs_seconds)",
                data="the target tables are at their cursors; later changes are not in the change log",
                do=f"airflow cdc resync {self.replicator}",
            )
        )

    def _parameters(self) -> dict[str, Any]:
        tls = mysql_tls(self.info)
        return {
            "host": self.info.host,
            "port": self.info.port or DEFAULT_PORT,
            "user": self.info.login,
            "password": self.info.password,
            "database": self.info.schema or None,
            "charset": "utf8mb4",
            "autocommit": True,
            "init_command": SETTINGS,
            "connect_timeout": CONNECT_LIMIT_S,
            "read_timeout": READ_LIMIT_S,
            **({"ssl": tls.context()} if tls else {}),
        }

    def _connection_error(self, error: Any) -> CdcError:
        code, text = error_details(error)
        if UNTRUSTED.search(text):
            return untrusted(self.address, self.info.connection_id, text, '`"ssl": {"ca": …}`')
        if code in LOGIN_ERRORS | PRIVILEGE_ERRORS:
            name = self.info.connection_id or "of the source"
            do = f"correct login, password or database of the Airflow connection {name}"
            return CheckFailed(self._problem("CON009", "the server rejects the login", text, do))
        return SourceUnavailable(
            self._problem("CON010", "the server cannot be reached", text, "check host, port and network")
        )

    def _translate(self, error: Any) -> CdcError:
        code, text = error_details(error)
        if code == BINLOG_READ_ERROR and any(part in text.lower() for part in POSITION_TEXTS):
            return self.position_lost(text)
        if code in PRIVILEGE_ERRORS:
            do = "run `airflow cdc check`: it prints the GRANT"
            return CheckFailed(self._problem("SRC010", "a privilege is missing", text, do))
        return SourceUnavailable(self._problem("CON013", "the server reported an error", text, "try again"))

    def _problem(self, code: str, what: str, found: str, do: str) -> Problem:
        return Problem(code, what, where=self.address, found=found, do=do)


def error_details(error: Any) -> tuple[int, str]:
    """The server's error code, 0 if there is none, and the first line of its message."""
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    text = str(error.args[1]) if len(error.args) > 1 else type(error).__name__
    return code, f"{code}: {text.splitlines()[0][:300] if text else type(error).__name__}"


def _pymysql() -> Any:
    try:
        import pymysql  # not required on workers without a MySQL source
    except ModuleNotFoundError as error:
        raise NotInstalled(
            Problem(
                "ENV010",
                "source type mysql needs a package that is not installed",
                found="no package pymysql",
                do="pip install 'airflow-cdc-provider[mysql]'",
            )
        ) from error
    return pymysql
