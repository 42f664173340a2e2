"""Databases behind TLS: what a connection asks for is verified."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
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
from tests.mariadb import embedded
from tests.tls_front import tls_front

pytestmark = pytest.mark.server


@dataclass(frozen=True)
class Behind:
    """A server behind TLS, and how its kind asks for it: with the file of an authority, without one, without proof."""

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
def postgres_behind_tls(server: EmbeddedPostgres) -> Iterator[Behind]:
    with certificate_files({}) as files, tls_front(server.port, *files) as port:
        required = {"sslmode": "require"}
        named, unproved = {**required, "sslrootcert": str(files[0])}, {**required, "tls_verify": False}
        yield Behind("postgres", server, port, named, required, unproved, "postgres")


@pytest.fixture(scope="module")
def mariadb_behind_tls() -> Iterator[Behind]:
    server = embedded(require_secure_transport="ON")
    with certificate_files(mariadb.run_as()) as (own, key):
        server.settings |= {"ssl-cert": str(own), "ssl-key": str(key)}
        with server:
            named, unproved = {"ssl": {"ca": str(own)}}, {"ssl": True, "tls_verify": False}
            yield Behind("mysql", server, server.port, named, {"ssl": True}, unproved, "mysql")


@pytest.fixture(params=["postgres", "mysql"])
def behind(request: pytest.FixtureRequest, postgres_behind_tls: Behind, mariadb_behind_tls: Behind) -> Behind:
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
    """The servers take no session without TLS."""
    with session(end, kind, info) as connection:
        cursor = connection.connection.cursor() if end == "polled" else connection.cursor()
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)


ENDS = pytest.mark.parametrize("end", ["source", "target", "polled"])


@ENDS
def test_a_server_whose_authority_is_named_is_talked_to_under_tls(behind: Behind, end: str) -> None:
    ask(end, behind.kind, behind.info(behind.named))


@ENDS
def test_a_server_of_an_unknown_authority_gets_no_login(behind: Behind, end: str) -> None:
    with pytest.raises(CheckFailed, match=r"CON042 .*do: add .* to the extra of connection db") as caught:
        ask(end, behind.kind, behind.info(behind.unnamed))
    assert behind.server.password not in str(caught.value)


@ENDS
def test_a_server_of_another_name_than_the_certificates_gets_no_login(behind: Behind, end: str) -> None:
    with pytest.raises(CheckFailed, match="CON042"):
        ask(end, behind.kind, behind.info(behind.named, host="localhost"))


@ENDS
def test_what_is_turned_off_is_turned_off(behind: Behind, end: str) -> None:
    ask(end, behind.kind, behind.info(behind.unproved, host="localhost"))


def test_an_authority_that_is_named_is_asked_for_whatever_the_mode_is_called(postgres_behind_tls: Behind) -> None:
    behind = postgres_behind_tls
    asked = {"sslrootcert": behind.named["sslrootcert"]}
    ask("source", "postgres", behind.info(asked))
    with pytest.raises(CheckFailed, match="CON042"):
        ask("source", "postgres", behind.info(asked, host="localhost"))
    ask("source", "postgres", behind.info({**asked, "sslmode": "verify-ca"}, host="localhost"))


def test_a_file_of_an_authority_that_is_not_there_is_named_and_no_server_is_asked(
    postgres_behind_tls: Behind, mariadb_behind_tls: Behind, tmp_path: Path
) -> None:
    nowhere = str(tmp_path / "nowhere.pem")
    with pytest.raises(CheckFailed, match=r"CON042.*nowhere\.pem"):
        ask("source", "postgres", postgres_behind_tls.info({"sslmode": "require", "sslrootcert": nowhere}))
    with pytest.raises(CheckFailed, match=r"CON040.*No such file"):
        ask("source", "mysql", mariadb_behind_tls.info({"ssl": {"ca": nowhere}}))


def test_a_server_without_tls_is_refused_where_it_is_asked_for(server: EmbeddedPostgres) -> None:
    info = ConnectionInfo("db", server.host, server.port, "postgres", server.password, "postgres")
    ask("source", "postgres", info)
    with pytest.raises(Exception, match="SSL"):
        ask("source", "postgres", ConnectionInfo(**{**vars(info), "extra": {"sslmode": "require"}}))
