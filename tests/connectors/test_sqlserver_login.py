"""The driver up to the login, over the real protocol: the requested verification takes place before the login is
sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_cdc_provider.connectors.sources.sqlserver.client import SqlServerClient
from airflow_cdc_provider.connectors.sources.sqlserver.source import SqlServerSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CdcError, CheckFailed, SourceUnavailable
from airflow_cdc_provider.core.spec.definition import Source
from tests.certificates import certificate
from tests.simulators.sqlserver.logins import login_server

PASSWORD = "sesame-42"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "server.pem", tmp_path / "server.key"
    for path, text in zip(paths, certificate("localhost"), strict=True):
        path.write_text(text)
    return paths


def info(port: int, host: str = "localhost", **extra: object) -> ConnectionInfo:
    return ConnectionInfo("db", host, port, "cdc", PASSWORD, "shop", extra)


def failure(connection: ConnectionInfo) -> CdcError:
    with pytest.raises(CdcError) as caught, SqlServerClient(connection, "shop").session("test"):
        raise AssertionError("a login that fails")
    assert PASSWORD not in str(caught.value) + repr(caught.value)
    return caught.value


def test_a_trusted_server_gets_the_login_encrypted_and_its_refusal_is_reported(files: tuple[Path, Path]) -> None:
    with login_server(*files) as logins:
        error = failure(info(logins.port, tls_ca=str(files[0])))
    assert isinstance(error, CheckFailed) and "CON009" in str(error) and "18456" in str(error)
    assert len(logins.received) == 1


def test_a_server_that_is_not_trusted_gets_no_login(files: tuple[Path, Path], tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    other.write_text(certificate("localhost")[0])
    with login_server(*files) as logins:
        for connection in (info(logins.port), info(logins.port, tls_ca=str(other))):
            assert "CON042" in str(failure(connection))
    assert logins.received == []


def test_a_certificate_for_another_host_is_not_trusted_unless_verification_is_turned_off(tmp_path: Path) -> None:
    files = tmp_path / "server.pem", tmp_path / "server.key"
    for path, text in zip(files, certificate("elsewhere"), strict=True):
        path.write_text(text)
    with login_server(*files) as logins:
        assert "CON042" in str(failure(info(logins.port, tls_ca=str(files[0])))) and logins.received == []
        assert "CON009" in str(failure(info(logins.port, "127.0.0.1", tls_ca=str(files[0])))), "it is for the address"
        assert "CON009" in str(failure(info(logins.port, tls_verify=False)))


def test_a_server_without_tls_gets_no_login_unless_tls_is_turned_off() -> None:
    with login_server() as logins:
        assert isinstance(failure(info(logins.port)), SourceUnavailable) and logins.received == []
        assert "CON009" in str(failure(info(logins.port, tls=False)))
    assert len(logins.received) == 1


def test_a_server_that_cannot_be_reached_can_be_retried() -> None:
    error = failure(info(1))
    assert isinstance(error, SourceUnavailable) and "CON010" in str(error)


@pytest.mark.parametrize(
    "extra",
    [
        {"driver": "/tmp/x.so"},
        {"tls": "maybe"},
        {"tls_ca": "../ca.pem"},
        {"tls_ca": "/no/such/ca.pem"},
        {"tls": False, "tls_ca": "/ca.pem"},
        {"tls_verify": False, "tls_ca": "/ca.pem"},
    ],
)
def test_other_options_are_rejected_before_a_connection(extra: dict[str, object]) -> None:
    assert "CON040" in str(failure(info(1, **extra)))


def test_tls_that_is_turned_off_is_a_warning() -> None:
    for extra in ({"tls": False}, {"tls_verify": False}):
        source = SqlServerSource(Source("sqlserver", "db"), info(1, **extra), "shop")
        assert [warning.code for warning in source.tls_warnings()] == ["CON041"]
    assert SqlServerSource(Source("sqlserver", "db"), info(1), "shop").tls_warnings() == []
