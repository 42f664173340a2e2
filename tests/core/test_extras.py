"""Which keys the extra of a connection may contain: none that loads code, reads files or runs statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from airflow_cdc_provider.connectors.sources.jdbc_poll import extras as polled
from airflow_cdc_provider.connectors.sources.jdbc_poll.extras import read_extra
from airflow_cdc_provider.core.connections import mysql_access, postgres_access
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.mysql_access import mysql_tls
from airflow_cdc_provider.core.connections.postgres_access import jdbc_parameters, libpq_parameters
from airflow_cdc_provider.core.connections.sqlserver_access import sqlserver_tls
from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.targets.redshift.session import login as redshift_login
from airflow_cdc_provider.targets.snowflake.session import login as snowflake_login

Reads = Callable[[ConnectionInfo], object]
Extra = Mapping[str, Any]


def connection(extra: Extra) -> ConnectionInfo:
    return ConnectionInfo("shop_db", "db", extra=extra)


LIBPQ: tuple[Extra, ...] = (
    {"passfile": "/etc/passwd"},
    {"service": "other"},
    {"servicefile": "/tmp/service"},
    {"options": "-c search_path=x"},
    {"host": "elsewhere"},
    {"hostaddr": "10.0.0.1"},
    {"dbname": "host=elsewhere"},
    {"user": "postgres"},
    {"krbsrvname": "x"},
    {"gsslib": "x"},
    {"sslkeylogfile": "/tmp/keys"},
    {"sslkey": "dynamic:/tmp/evil.so"},
    {"sslkey": "relative.key"},
    {"sslrootcert": "/certs/../../root/secret"},
    {"sslmode": "sometimes"},
    {"sslmode": "require", "tls_verify": "maybe"},
    {"sslmode": "verify-full", "tls_verify": False},
    {"sslmode": "require", "tls_verify": False, "sslrootcert": "/ca.pem"},
)
PYMYSQL: tuple[Extra, ...] = (
    {"read_default_file": "/root/.my.cnf"},
    {"read_default_group": "client"},
    {"init_command": "DROP TABLE t"},
    {"local_infile": True},
    {"allow_local_infile": True},
    {"unix_socket": "/tmp/mysql.sock"},
    {"client_flag": 128},
    {"conv": "x"},
    {"cursorclass": "os.system"},
    {"auth_plugin_map": {"x": "y"}},
    {"server_public_key": "x"},
    {"ssl_ca": "/ca.pem"},
    {"plugin": "x"},
    {"ssl": "yes"},
    {"ssl": {"ca": "ca.pem"}},
    {"ssl": {"ca": "/ca.pem&allowLocalInfile=true"}},
    {"ssl": {"ca": "/ca.pem", "verify_mode": "none"}},
    {"ssl": {"ca": "/ca.pem", "check_hostname": False}},
    {"ssl": {"key": "/key.pem"}},
    {"ssl": {"ca": "/ca.pem"}, "tls_verify": False},
    {"tls_verify": False},
)
PYODBC: tuple[Extra, ...] = (
    {"odbc_connect": "DRIVER=/tmp/evil.so"},
    {"driver": "/tmp/evil.so"},
    {"driver": "x;Trace=1"},
    {"Encrypt": "no;Driver=/tmp/evil.so"},
    {"TrustServerCertificate": "perhaps"},
    {"KeystoreLocation": "/tmp"},
    {"plugin": "x"},
)
REDSHIFT: tuple[Extra, ...] = (
    {"profile": "admin"},
    {"iam": True, "credentials_provider": "BrowserSamlCredentialsProvider"},
    {"iam": True, "endpoint_url": "https://elsewhere"},
    {"iam": True, "idp_host": "elsewhere", "preferred_role": "x"},
    {"iam": "perhaps"},
    {"cluster_identifier": "x"},
    {"iam": True, "ssl": False, "cluster_identifier": "x"},
    {"sslmode": "disable"},
    {"sslmode": "require"},
    {"unix_sock": "/tmp/redshift.sock"},
    {"plugin_name": "x"},
    {"host": "elsewhere"},
)
SNOWFLAKE: tuple[Extra, ...] = (
    {"private_key_file": "relative.key"},
    {"authenticator": "https://elsewhere"},
    {"connection_name": "other"},
    {"token_file_path": "/root/token"},
    {"proxy_host": "elsewhere"},
)
PYTDS: tuple[Extra, ...] = (
    {"driver": "/tmp/evil.so"},
    {"load_balancer": "evil"},
    {"auth": "x"},
    {"tls": "perhaps"},
    {"tls_ca": "../ca.pem"},
    {"tls": False, "tls_ca": "/ca.pem"},
    {"tls_verify": False, "tls_ca": "/ca.pem"},
)
OTHERS: tuple[tuple[str, Extra], ...] = (
    ("oracle+oracledb", {"config_dir": "/tmp"}),
    ("oracle+oracledb", {"thick_mode": "true"}),
    ("oracle+oracledb", {"service_name": "x)(ADDRESS=(HOST=elsewhere))"}),
    ("sqlite", {"mode": "rw"}),
    ("sqlite", {"plugin": "x"}),
    ("snowflake", {"private_key_file": "/root/key"}),
    ("mysql+mysqldb", {"read_default_file": "/root/.my.cnf"}),
)
CASES: list[tuple[Reads, Extra]] = [
    *((libpq_parameters, extra) for extra in LIBPQ),
    *((partial(read_extra, "postgresql+psycopg"), extra) for extra in LIBPQ),
    *((mysql_tls, extra) for extra in PYMYSQL),
    *((partial(read_extra, "mysql+pymysql"), extra) for extra in PYMYSQL),
    *((partial(read_extra, "mssql+pyodbc"), extra) for extra in PYODBC),
    *((redshift_login, extra) for extra in REDSHIFT),
    *((snowflake_login, extra) for extra in SNOWFLAKE),
    *((sqlserver_tls, extra) for extra in PYTDS),
    *((partial(read_extra, driver), extra) for driver, extra in OTHERS),
]


@pytest.mark.parametrize(("reads", "extra"), CASES)
def test_keys_that_load_code_read_files_or_redirect_are_refused_by_name(reads: Reads, extra: Extra) -> None:
    with pytest.raises(CheckFailed, match=r"CON040 .*where: extra of connection shop_db \| found: ") as caught:
        reads(connection(extra))
    (problem,) = caught.value.problems
    assert any(key in problem.found for key in extra), problem
    assert problem.allowed
    assert "evil" not in str(problem), "a value may be a secret"


def test_all_refused_keys_are_reported_at_once_with_all_allowed_keys() -> None:
    with pytest.raises(CheckFailed) as caught:
        read_extra("mysql+pymysql", connection({"local_infile": 1, "init_command": "x", "ssl": True}))
    assert caught.value.problems[0].found == "init_command, local_infile"
    assert caught.value.problems[0].allowed == "ssl, tls_verify"


def test_keys_that_only_the_hook_of_airflow_reads_are_accepted() -> None:
    assert libpq_parameters(connection({"cursor": "dictcursor", "connect_timeout": 5, "sslcert": ""})) == {
        "connect_timeout": 5
    }
    assert mysql_tls(connection({"charset": "utf8", "cursor": "sscursor"})) is None


@pytest.mark.parametrize(
    ("extra", "mode", "authority"),
    [
        ({}, None, None),
        ({"sslmode": "disable"}, "disable", None),
        ({"sslmode": "prefer"}, "prefer", None),
        ({"sslmode": "require", "sslrootcert": "/ca.pem"}, "verify-full", "/ca.pem"),
        ({"sslrootcert": "/ca.pem"}, "verify-full", "/ca.pem"),
        ({"sslmode": "verify-ca", "sslrootcert": "/ca.pem"}, "verify-ca", "/ca.pem"),
        ({"sslmode": "require"}, "verify-full", "/etc/authorities.pem"),
        ({"sslrootcert": "system"}, "verify-full", "/etc/authorities.pem"),
        ({"sslmode": "require", "tls_verify": False}, "require", None),
    ],
)
def test_requested_tls_is_verified(
    monkeypatch: pytest.MonkeyPatch, extra: Extra, mode: str | None, authority: str | None
) -> None:
    monkeypatch.setattr(postgres_access, "host_authorities", lambda: "/etc/authorities.pem")
    wanted = {name: text for name, text in (("sslmode", mode), ("sslrootcert", authority)) if text}
    assert libpq_parameters(connection(extra)) == jdbc_parameters(connection(extra)) == wanted


def test_the_jdbc_driver_of_mysql_has_the_same_tls_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mysql_access, "host_authorities", lambda: "/etc/authorities.pem")

    def jdbc_options(extra: Extra) -> str:
        tls = mysql_tls(connection(extra))
        assert tls is not None
        return tls.jdbc()

    assert jdbc_options({"ssl": {"ca": "/ca.pem"}}) == "sslMode=verify-full&serverSslCert=/ca.pem"
    assert jdbc_options({"ssl": True}) == "sslMode=verify-full&serverSslCert=/etc/authorities.pem"
    assert jdbc_options({"ssl": True, "tls_verify": "false"}) == "sslMode=trust"


@pytest.mark.parametrize(
    ("tls_warnings", "extra", "found"),
    [
        (postgres_access.tls_warnings, {"sslmode": "require", "tls_verify": False}, "tls_verify: false"),
        (postgres_access.tls_warnings, {"sslmode": "verify-ca", "sslrootcert": "/ca.pem"}, "sslmode: verify-ca"),
        (mysql_access.tls_warnings, {"ssl": True, "tls_verify": False}, "tls_verify: false"),
        (partial(polled.tls_warnings, "mariadb+pymysql"), {"ssl": True, "tls_verify": False}, "tls_verify: false"),
        (
            partial(polled.tls_warnings, "mssql+pyodbc"),
            {"TrustServerCertificate": "yes"},
            "TrustServerCertificate: yes",
        ),
    ],
)
def test_disabled_verification_is_reported(
    tls_warnings: Callable[[ConnectionInfo], list[Problem]], extra: Extra, found: str
) -> None:
    (problem,) = tls_warnings(connection(extra))
    assert problem.code == "CON041"
    assert problem.found.startswith(found)
    assert tls_warnings(connection({})) == []


def test_a_driver_of_another_system_receives_its_options() -> None:
    odbc = {"driver": "ODBC Driver 18 for SQL Server", "Encrypt": "strict", "TrustServerCertificate": "no"}
    assert read_extra("mssql+pyodbc", connection(odbc)).query == odbc
    assert read_extra("oracle+oracledb", connection({"service_name": "FREEPDB1"})).query == {"service_name": "FREEPDB1"}
