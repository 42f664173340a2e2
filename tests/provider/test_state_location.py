"""The location of the state store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_cdc_provider.core.errors import CdcError, CheckFailed
from airflow_cdc_provider.hooks.state import open_state, state_tls_warnings


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    monkeypatch.delenv("AIRFLOW_CONN_CDC_STATE", raising=False)
    return tmp_path


@pytest.mark.parametrize("executor", ["LocalExecutor", "airflow.executors.local_executor.LocalExecutor"])
def test_on_one_host_the_state_store_is_a_file_in_the_home_of_airflow(
    home: Path, monkeypatch: pytest.MonkeyPatch, executor: str
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", executor)
    assert open_state().database.url == f"sqlite:///{home}/cdc/state.db"
    assert not (home / "cdc").exists(), "no folder is created before it is used"


@pytest.mark.parametrize("executor", ["CeleryExecutor", "LocalExecutor,KubernetesExecutor", "my.module.OwnExecutor"])
def test_on_several_hosts_a_file_is_refused_with_the_command_that_adds_a_connection(
    monkeypatch: pytest.MonkeyPatch, executor: str
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", executor)
    with pytest.raises(CheckFailed, match=r"STA020.*do: airflow connections add cdc_state"):
        open_state()


def test_a_connection_determines_the_location_with_any_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"conn_type": "postgres", "host": "db", "login": "cdc", "password": "p@ss:word", "schema": "cdc"}
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "CeleryExecutor")
    monkeypatch.setenv("AIRFLOW_CONN_CDC_STATE", json.dumps({**fields, "extra": {"connect_timeout": 5}}))
    assert open_state().database.url == "postgresql+psycopg://cdc:p%40ss%3Aword@db/cdc?connect_timeout=5"


def test_a_connection_that_is_no_url_is_refused_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_CDC_STATE", json.dumps({"conn_type": "", "host": "db", "extra": {"a": "b"}}))
    with pytest.raises(CheckFailed, match=r"STA021.*connection cdc_state.*do: airflow connections"):
        open_state().owner()


@pytest.mark.parametrize("value", ["postgresql://db:port/cdc", "{broken", '{"conn_type": "postgres", "port": "x"}'])
def test_a_variable_that_airflow_cannot_read_is_refused_and_no_file_is_used_instead(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_CDC_STATE", value)
    with pytest.raises(CheckFailed, match=r"STA022.*AIRFLOW_CONN_CDC_STATE.*do: ") as caught:
        open_state()
    assert value not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"conn_type": "sqlite", "host": "x"}, "STA021"),
        ({"conn_type": "postgres", "host": "db..example", "schema": "cdc"}, "STA010"),
    ],
)
def test_an_unreachable_location_is_reported(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, str], error: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_CDC_STATE", json.dumps(fields))
    with pytest.raises(CdcError, match=error):
        open_state().owner()


def test_tls_to_the_state_store_is_verified_and_its_extra_names_no_files_and_no_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def url_with(**extra: str) -> str:
        fields = {"conn_type": "postgres", "host": "db", "login": "cdc", "schema": "cdc", "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_CDC_STATE", json.dumps(fields))
        return open_state().database.url

    url = url_with(sslmode="require", sslrootcert="/ca.pem")
    assert "sslmode=verify-full" in url and "sslrootcert=%2Fca.pem" in url
    for key in ("service", "plugin", "options"):
        with pytest.raises(CheckFailed, match=rf"CON040 .*connection cdc_state \| found: {key} "):
            url_with(**{key: "x"})


def test_unverified_tls_to_the_state_store_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def warnings_of(**extra: object) -> list[str]:
        fields = {"conn_type": "postgres", "host": "db", "login": "cdc", "schema": "cdc", "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_CDC_STATE", json.dumps(fields))
        return [f"{one.code} {one.where}" for one in state_tls_warnings()]

    assert state_tls_warnings() == []
    assert warnings_of(sslmode="require") == []
    assert warnings_of(sslmode="require", tls_verify=False) == ["CON041 extra of connection cdc_state"]
    assert warnings_of(sslmode="verify-ca", sslrootcert="/ca.pem") == ["CON041 extra of connection cdc_state"]
