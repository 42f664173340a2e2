"""Sessions with a MySQL or MariaDB server, and its errors in our words."""

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
NO_RIGHT = frozenset({1044, 1142, 1143, 1227, 1370})
NO_LOGIN = frozenset({1045, 1049, 1698})
NO_BINLOG_EVENT = 1236
GONE = ("first log file name", "file size", "impossible position", "bogus data", "truncated")
"""What that error says where the place is not there. Else a reader was sent away, or memory was short."""

SETTINGS = "SET SESSION time_zone = '+00:00', sql_mode = '', net_write_timeout = 3600"


class MysqlClient:
    """Opens sessions for one replicator; keeps none."""

    def __init__(self, info: ConnectionInfo, replicator: str) -> None:
        self.info = info
        self.replicator = replicator

    @property
    def place(self) -> str:
        """Where errors say it happened."""
        return f"{self.info.host}:{self.info.port or DEFAULT_PORT} as {self.info.login}"

    @contextmanager
    def session(self, purpose: str, *, unbuffered: bool = False) -> Iterator[Any]:
        """A session in UTC that commits by itself. ``unbuffered``: rows come as they are asked for. Errors of the
        server inside it come out as CdcError."""
        pymysql = _pymysql()
        with self.errors():
            try:
                connection = pymysql.connect(
                    **self._parameters(),
                    program_name=f"cdc:{self.replicator}:{purpose}",
                    cursorclass=pymysql.cursors.SSCursor if unbuffered else pymysql.cursors.Cursor,
                )
            except pymysql.OperationalError as error:
                raise self._no_session(error) from error
            try:
                yield connection
            finally:
                if connection.open:
                    connection.close()

    @contextmanager
    def errors(self) -> Iterator[None]:
        pymysql = _pymysql()
        try:
            yield
        except pymysql.Error as error:
            raise self._in_words(error) from error

    def lost(self, found: str) -> PositionLost:
        return PositionLost(
            Problem(
                "SRC013",
                "the source no longer serves our position",
                where=self.place,
                found=found,
                allowed="binlog files that are kept until they have been read (binlog_expire_logs_seconds)",
                data="the target tables stand at their cursors; changes after them are not in the log",
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

    def _no_session(self, error: Any) -> CdcError:
        code, text = said(error)
        if UNTRUSTED.search(text):
            return untrusted(self.place, self.info.connection_id, text, '`"ssl": {"ca": …}`')
        if code in NO_LOGIN | NO_RIGHT:
            name = self.info.connection_id or "of the source"
            do = f"mend login, password or database of the Airflow connection {name}"
            return CheckFailed(self._problem("CON009", "the server refuses the login", text, do))
        return SourceUnavailable(
            self._problem("CON010", "the server cannot be reached", text, "check host, port and network")
        )

    def _in_words(self, error: Any) -> CdcError:
        code, text = said(error)
        if code == NO_BINLOG_EVENT and any(words in text.lower() for words in GONE):
            return self.lost(text)
        if code in NO_RIGHT:
            do = "see `airflow cdc check` for the GRANT"
            return CheckFailed(self._problem("SRC010", "a right is missing", text, do))
        return SourceUnavailable(self._problem("CON013", "the server failed", text, "try again"))

    def _problem(self, code: str, what: str, found: str, do: str) -> Problem:
        return Problem(code, what, where=self.place, found=found, do=do)


def said(error: Any) -> tuple[int, str]:
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    text = str(error.args[1]) if len(error.args) > 1 else type(error).__name__
    return code, f"{code}: {text.splitlines()[0][:300] if text else type(error).__name__}"


def _pymysql() -> Any:
    try:
        import pymysql  # a worker that runs no MySQL source need not have it
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
