"""Sessions with a PostgreSQL server; its errors become CdcError."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.postgres_access import AUTHORITY, libpq_parameters
from airflow_cdc_provider.core.connections.tls import UNTRUSTED, untrusted
from airflow_cdc_provider.core.errors import CdcError, CheckFailed, NotInstalled, Problem, SourceUnavailable

if TYPE_CHECKING:
    from psycopg import Connection, Error

DEFAULT_PORT = 5432
NONE_FREE = "SRC026"
"""All slots or senders are in use: the only error that a short wait can resolve."""

CONNECT_LIMIT_S = 10
KEEPALIVE_S = 60
# Output functions depend on these settings, in the stream and in a copy. With an empty search_path they print qualified
# names. With row_security off a policy that would hide rows is an error. No timeouts: the session that exports the
# snapshot of a copy is idle for the duration of the copy.
SETTINGS = {
    "client_encoding": "UTF8",
    "datestyle": "ISO, YMD",
    "intervalstyle": "iso_8601",
    "timezone": "UTC",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "xmloption": "content",
    "lc_monetary": "C",
    "search_path": "",
    "row_security": "off",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
}


def settings_sql() -> str:
    return "; ".join(f"SET {name} TO '{value}'" for name, value in SETTINGS.items())


class PostgresClient:
    """Opens sessions for one replicator. Their application name contains the replicator and the purpose."""

    def __init__(self, info: ConnectionInfo, replicator: str) -> None:
        self.info = info
        self.replicator = replicator

    @property
    def location(self) -> str:
        """For ``Problem.where``: server, database, role."""
        return f"{self.info.host}:{self.info.port or DEFAULT_PORT}/{self.info.schema} as {self.info.login}"

    def application_name(self, purpose: str) -> str:
        return f"{self.session_prefix}{purpose}@{socket.gethostname()[:20]}.{os.getpid()}"

    @property
    def session_prefix(self) -> str:
        return f"cdc:{self.replicator}:"

    @contextmanager
    def session(self, purpose: str, *, autocommit: bool = True, replication: bool = False) -> Iterator[Connection]:
        """A session under the fixed settings. Errors of the server are raised as CdcError."""
        psycopg = _psycopg()
        with self.errors():
            try:
                connection = psycopg.connect(**self._parameters(purpose, replication), autocommit=True)
            except psycopg.OperationalError as error:
                raise self._no_session(error) from error
            try:
                connection.execute(settings_sql().encode())
                connection.autocommit = autocommit
                yield connection
            finally:
                connection.close()

    @contextmanager
    def errors(self) -> Iterator[None]:
        psycopg = _psycopg()
        try:
            yield
        except psycopg.errors.InsufficientPrivilege as error:
            raise self._forbidden(error) from error
        except psycopg.Error as error:
            raise SourceUnavailable(self._failed(error)) from error

    def _parameters(self, purpose: str, replication: bool) -> dict[str, Any]:
        parameters = {
            "connect_timeout": CONNECT_LIMIT_S,
            "keepalives_idle": KEEPALIVE_S,
            **libpq_parameters(self.info),
            "host": self.info.host,
            "port": self.info.port or DEFAULT_PORT,
            "dbname": self.info.schema,
            "user": self.info.login,
            "password": self.info.password or None,
            "application_name": self.application_name(purpose),
        }
        return parameters | ({"replication": "database"} if replication else {})

    def _no_session(self, error: Error) -> CdcError:
        """libpq has only a text and no SQLSTATE for a failed connection, so the text is parsed."""
        text = _first_line(error)
        if UNTRUSTED.search(text):
            return untrusted(self.location, self.info.connection_id, text, f"`{AUTHORITY}`")
        if any(
            phrase in text for phrase in ("password", "pg_hba.conf", "authentication failed", "not permitted to log in")
        ):
            return CheckFailed(self._problem("CON009", "the server refuses the login", text, self._edit()))
        if "permission denied for database" in text:
            statement = f'GRANT CONNECT ON DATABASE "{self.info.schema}" TO "{self.info.login}";'
            return CheckFailed(self._problem("SRC010", "the role lacks CONNECT on the database", text, statement))
        if "database" in text and "does not exist" in text:
            return CheckFailed(self._problem("CON011", "the database does not exist", text, self._edit()))
        if "max_wal_senders" in text:
            return self.none_free("replication session", "max_wal_senders")
        if any(phrase in text for phrase in ("replication", "WAL sender", "walsender")):
            return SourceUnavailable(
                self._problem("SRC011", "a replication session cannot be opened", text, "see `airflow cdc check`")
            )
        return SourceUnavailable(
            self._problem("CON010", "the server cannot be reached", text, "check host, port and network")
        )

    def none_free(self, what: str, setting: str) -> SourceUnavailable:
        """``setting``: the server setting that limits their number."""
        return SourceUnavailable(
            Problem(
                NONE_FREE,
                f"no {what} is free",
                where=self.location,
                found=f"all that {setting} allows are in use",
                allowed="one for the stream, and one for each table while it is copied",
                do=f"drop unused slots (see pg_replication_slots), or raise {setting} and restart the server; the next "
                "run tries again",
            )
        )

    def _edit(self) -> str:
        name = self.info.connection_id or "the source"
        return f"correct the login, password or database of the Airflow connection {name}"

    def _forbidden(self, error: Error) -> CdcError:
        return CheckFailed(
            self._problem("SRC010", "permission denied", _first_line(error), "see `airflow cdc check` for the GRANT")
        )

    def _failed(self, error: Error) -> Problem:
        state = error.sqlstate or "connection lost"
        return self._problem("CON013", "the server returned an error", f"{state}: {_first_line(error)}", "try again")

    def _problem(self, code: str, what: str, found: str, do: str) -> Problem:
        return Problem(code, what, where=self.location, found=found, do=do)


def _first_line(error: Error) -> str:
    """The server's main message. Its detail line may quote values, so it is left out."""
    text = error.diag.message_primary or str(error)
    return text.strip().splitlines()[0] if text.strip() else type(error).__name__


def _psycopg() -> Any:
    try:
        import psycopg  # optional: only workers with a PostgreSQL source require it
    except ModuleNotFoundError as error:
        raise NotInstalled(
            Problem(
                "ENV010",
                "source type postgres needs a package that is not installed",
                found="no package psycopg",
                do="pip install 'airflow-cdc-provider[postgres]'",
            )
        ) from error
    return psycopg
