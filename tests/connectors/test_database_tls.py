"""Databases behind TLS: the requested verification takes place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.connectors.sources.jdbc_poll.database import Database as Polled
from airflow_cdc_provider.connectors.sources.jdbc_poll.options import JdbcPollOptions
from airflow_cdc_provider.connectors.sources.mysql.client import MysqlClient as MysqlClient
from airflow_cdc_provider.connectors.sources.postgres.client import PostgresClient as PostgresClient
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.sandbox import mariadb
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from airflow_cdc_provider.targets.mysql.server import MysqlServer
from airflow_cdc_provider.targets.postgres.server import PostgresServer
from tests.certificates import certificate_files
from tests.mariadb import TLS, embedded
from tests.tls_front import tls_front

pytestmark = pytest.mark.server


@dataclass(frozen=True)
class TlsServer:
    """A server behind TLS, and the extras of its kind: with the file of an authority, without one, without
    verification."""

    kind: str
    server: EmbeddedPostgres | EmbeddedMariaDB
    port: int
    named: Mapping[str, Any]
    unnamed: Mapping[str, Any]
    unproved: Mapping[str, Any]
    database: str

    def info(self, extra: Mapping[str, Any], host: str = "") -> ConnectionInfo:
        host, login = host or self.server.host, self.server.user
        return ConnectionInfo("db", host, self.port, login, self.server.password, self.database, extra)


@pytest.fixture(scope="module")
def postgres_behind_tls(server: EmbeddedPostgres) -> Iterator[TlsServer]:
    with certificate_files({}) as files, tls_front(server.port, *files) as port:
        required = {"sslmode": "require"}
        named, unproved = {**required, "sslrootcert": str(files[0])}, {**required, "tls_verify": False}
        yield TlsServer("postgres", server, port, named, required, unproved, "postgres")


@pytest.fixture(scope="module")
def mariadb_behind_tls() -> Iterator[TlsServer]:
    server = embedded(require_secure_transport="ON", **TLS)
    with certificate_files(mariadb.run_as()) as (own, key):
        server.settings |= {"ssl-cert": str(own), "ssl-key": str(key)}
        with server:
            named, unproved = {"ssl": {"ca": str(own)}}, {"ssl": True, "tls_verify": False}
            yield TlsServer("mysql", server, server.port, named, {"ssl": True}, unproved, "mysql")


@pytest.fixture(params=["postgres", "mysql"])
def behind(request: pytest.FixtureRequest, postgres_behind_tls: TlsServer, mariadb_behind_tls: TlsServer) -> TlsServer:
    return postgres_behind_tls if request.param == "postgres" else mariadb_behind_tls


def session(end: str, kind: str, info: ConnectionInfo) -> AbstractContextManager[Any]:
    match (end, kind):
        case ("source", "postgres"):
            return PostgresClient(info, "shop").session("test")
        case ("source", _):
            return MysqlClient(info, "shop").session("test")
        case ("target", "postgres"):
            return PostgresServer(info, "public", "shop").session("test")
        case ("target", _):
            return MysqlServer(info, "mysql", "shop").session("test")
        case _:
            driver = "postgresql+psycopg" if kind == "postgres" else "mysql+pymysql"
            options = JdbcPollOptions(driver=driver, timestamp_column="updated_at")
            return Polled(info, options).session()


def ask(end: str, kind: str, info: ConnectionInfo) -> None:
    """The servers accept no session without TLS."""
    with session(end, kind, info) as connection:
        cursor = connection.connection.cursor() if end == "polled" else connection.cursor()
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)


ENDS = pytest.mark.parametrize("end", ["source", "target", "polled"])


@ENDS
def test_a_server_with_a_trusted_authority_is_reached_under_tls(behind: TlsServer, end: str) -> None:
    ask(end, behind.kind, behind.info(behind.named))


@ENDS
def test_a_server_of_an_unknown_authority_receives_no_login(behind: TlsServer, end: str) -> None:
    with pytest.raises(CheckFailed, match=r"CON042 .*do: add .* to the extra of connection db") as caught:
        ask(end, behind.kind, behind.info(behind.unnamed))
    assert behind.server.password not in str(caught.value)


@ENDS
def test_a_server_whose_name_is_not_in_the_certificate_receives_no_login(behind: TlsServer, end: str) -> None:
    with pytest.raises(CheckFailed, match="CON042"):
        ask(end, behind.kind, behind.info(behind.named, host="localhost"))


@ENDS
def test_disabled_verification_is_disabled(behind: TlsServer, end: str) -> None:
    ask(end, behind.kind, behind.info(behind.unproved, host="localhost"))


def test_a_given_authority_is_verified_whatever_the_mode(postgres_behind_tls: TlsServer) -> None:
    behind = postgres_behind_tls
    extra = {"sslrootcert": behind.named["sslrootcert"]}
    ask("source", "postgres", behind.info(extra))
    with pytest.raises(CheckFailed, match="CON042"):
        ask("source", "postgres", behind.info(extra, host="localhost"))
    ask("source", "postgres", behind.info({**extra, "sslmode": "verify-ca"}, host="localhost"))


def test_a_missing_file_of_an_authority_is_reported_before_any_connection(
    postgres_behind_tls: TlsServer, mariadb_behind_tls: TlsServer, tmp_path: Path
) -> None:
    nowhere = str(tmp_path / "nowhere.pem")
    with pytest.raises(CheckFailed, match=r"CON042.*nowhere\.pem"):
        ask("source", "postgres", postgres_behind_tls.info({"sslmode": "require", "sslrootcert": nowhere}))
    with pytest.raises(CheckFailed, match=r"CON040.*No such file"):
        ask("source", "mysql", mariadb_behind_tls.info({"ssl": {"ca": nowhere}}))


def test_a_server_without_tls_is_refused_when_tls_is_requested(server: EmbeddedPostgres) -> None:
    info = ConnectionInfo("db", server.host, server.port, "postgres", server.password, "postgres")
    ask("source", "postgres", info)
    with pytest.raises(Exception, match="SSL"):
        ask("source", "postgres", ConnectionInfo(**{**vars(info), "extra": {"sslmode": "require"}}))


def test_a_mysql_server_without_tls_is_refused_when_tls_is_requested(mariadb: EmbeddedMariaDB) -> None:
    info = ConnectionInfo("db", mariadb.host, mariadb.port, mariadb.user, mariadb.password, "mysql")
    ask("source", "mysql", info)
    with pytest.raises(Exception, match="SSL"):
        ask("source", "mysql", replace(info, extra={"ssl": True}))


@pytest.mark.parametrize("end", ["source", "target"])
def test_tls_is_used_where_a_mysql_server_has_it(mariadb_behind_tls: TlsServer, end: str) -> None:
    ask(end, "mysql", mariadb_behind_tls.info({}))
