"""Sessions with a MySQL or MariaDB server. Its errors are raised as CdcError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow_cdc_provider.connectors import server_errors
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.mysql_errors import meaning
from airflow_cdc_provider.core.connections.mysql_session import (
    code_and_message,
    error_code,
    open_session,
    server_address,
)
from airflow_cdc_provider.core.connections.mysql_settings import WAIT_LIMIT_S, settings_statement
from airflow_cdc_provider.core.errors import CdcError, PositionLost
from airflow_cdc_provider.core.registry import load_library

BINLOG_READ_ERROR = 1236
POSITION_TEXTS = ("first log file name", "file size", "impossible position", "bogus data", "truncated")
"""Texts of that error when the position does not exist. Others: the reader was disconnected, or memory was short."""


class MysqlClient:
    """Opens sessions for one replicator, and keeps none open."""

    def __init__(self, info: ConnectionInfo, replicator: str) -> None:
        self.info = info
        self.replicator = replicator

    @property
    def address(self) -> str:
        """The server and login as error messages name them."""
        return server_address(self.info)

    @contextmanager
    def session(self, purpose: str, *, unbuffered: bool = False) -> Iterator[Any]:
        """A session in UTC with autocommit. ``unbuffered``: rows are fetched on demand. Raises errors of the server as
        CdcError."""
        pymysql = _pymysql()
        with (
            self.translated_errors(),
            open_session(
                pymysql,
                self.info,
                server_errors,
                database=self.info.schema or None,
                autocommit=True,
                init_command=settings_statement(),
                read_timeout=WAIT_LIMIT_S,
                program_name=f"cdc:{self.replicator}:{purpose}",
                cursorclass=pymysql.cursors.SSCursor if unbuffered else pymysql.cursors.Cursor,
            ) as connection,
        ):
            try:
                yield connection
            except BaseException:
                _abandon(connection)
                raise

    @contextmanager
    def translated_errors(self) -> Iterator[None]:
        pymysql = _pymysql()
        try:
            yield
        except pymysql.Error as error:
            raise self._translate(error) from error

    def position_lost(self, found: str) -> PositionLost:
        return PositionLost.of(
            "SRC013",
            "the source no longer has the position that was read last",
            where=self.address,
            found=found,
            allowed="binlog files that are kept until they have been read (binlog_expire_logs_seconds)",
            data="the target tables are at their cursors; later changes are not in the change log",
            do=f"airflow cdc resync {self.replicator}",
        )

    def _translate(self, error: Any) -> CdcError:
        code, text = error_details(error)
        if code == BINLOG_READ_ERROR and any(part in text.lower() for part in POSITION_TEXTS):
            return self.position_lost(text)
        return server_errors.server_failed(self.address, text, meaning(code, text))


def _abandon(connection: Any) -> None:
    """PyMySQL would read the rest of an unfinished result, even of a closed connection."""
    if (result := connection._result) is not None:
        result.unbuffered_active = False


def error_details(error: Any) -> tuple[int, str]:
    """The server's error code, 0 if there is none, and the first line of its message."""
    return error_code(error), code_and_message(error).splitlines()[0][:300]


def _pymysql() -> Any:
    return load_library("pymysql", "source", "mysql")
