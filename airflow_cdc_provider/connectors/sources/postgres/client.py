"""Sessions with a PostgreSQL server; its errors become CdcError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors import server_errors
from airflow_cdc_provider.core.connections import postgres_session
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.postgres_errors import meaning
from airflow_cdc_provider.core.connections.postgres_session import application_name, open_session, server_address
from airflow_cdc_provider.core.errors import CdcError, CheckFailed, SourceUnavailable
from airflow_cdc_provider.core.registry import load_library

if TYPE_CHECKING:
    from psycopg import Connection

NONE_FREE = "SRC026"
"""All slots or senders are in use: the only error that a short wait can resolve."""


class PostgresClient:
    """Opens sessions for one replicator. Their application name contains the replicator and the purpose."""

    def __init__(self, info: ConnectionInfo, replicator: str) -> None:
        self.info = info
        self.replicator = replicator

    @property
    def location(self) -> str:
        """For ``Problem.where``: server, database, role."""
        return server_address(self.info)

    @property
    def session_prefix(self) -> str:
        return postgres_session.session_prefix(self.replicator)

    @contextmanager
    def session(self, purpose: str, *, autocommit: bool = True, replication: bool = False) -> Iterator[Connection]:
        """A session under the fixed settings. Errors of the server are raised as CdcError."""
        name = application_name(self.replicator, purpose)
        parameters: dict[str, Any] = {"replication": "database"} if replication else {}
        with (
            self.errors(),
            open_session(_psycopg(), self.info, name, self._not_connected, **parameters) as connection,
        ):
            connection.autocommit = autocommit
            yield connection

    @contextmanager
    def errors(self) -> Iterator[None]:
        psycopg = _psycopg()
        try:
            yield
        except psycopg.Error as error:
            found = postgres_session.state_and_message(psycopg, error)
            means = meaning(error.sqlstate, postgres_session.is_of_client(psycopg, error))
            raise server_errors.server_failed(self.location, found, means) from error

    def _not_connected(self, text: str) -> CdcError:
        """libpq has only a text and no SQLSTATE for a failed connection, so the text is parsed."""
        if any(
            phrase in text for phrase in ("password", "pg_hba.conf", "authentication failed", "not permitted to log in")
        ):
            return server_errors.login_rejected(self.location, text, self.info.connection_id)
        if "permission denied for database" in text:
            statement = f'GRANT CONNECT ON DATABASE "{self.info.schema}" TO "{self.info.login}";'
            return server_errors.missing_privilege(self.location, text, statement)
        if "database" in text and "does not exist" in text:
            do = server_errors.correct_connection(self.info.connection_id)
            return CheckFailed.of("CON011", "the database does not exist", self.location, text, do=do)
        if "max_wal_senders" in text:
            return self.none_free("replication session", "max_wal_senders")
        if any(phrase in text for phrase in ("too many connections", "remaining connection slots")):
            return server_errors.server_failed(self.location, text, meaning("53300"))
        if any(phrase in text for phrase in ("starting up", "shutting down", "not yet accepting connections")):
            return server_errors.server_failed(self.location, text, meaning("57P03"))
        if any(phrase in text for phrase in ("replication", "WAL sender", "walsender")):
            what = "a replication session cannot be opened"
            do = "connect to the server itself, not to a pooler, with a role that has REPLICATION"
            return CheckFailed.of("SRC011", what, self.location, text, do=do)
        return server_errors.unreachable(self.location, text)

    def none_free(self, what: str, setting: str) -> SourceUnavailable:
        """``setting``: the server setting that limits their number."""
        return SourceUnavailable.of(
            NONE_FREE,
            f"no {what} is free",
            where=self.location,
            found=f"all that {setting} allows are in use",
            allowed="one for the stream, and one for each table while it is copied",
            do=f"drop unused slots (see pg_replication_slots), or raise {setting} and restart the server; the next "
            "run tries again",
        )


def _psycopg() -> Any:
    return load_library("psycopg", "source", "postgres")
