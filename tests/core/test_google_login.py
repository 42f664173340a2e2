"""The login of a Google Cloud connection, which BigQuery, Spanner and Cloud Storage read alike."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.google import google_account, google_login, google_tls_warnings
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.storage.locations import parse_location
from airflow_cdc_provider.core.storage.stores import store_access

READERS: dict[str, Callable[[ConnectionInfo], object]] = {
    "a database": lambda info: google_login(info, "bigquery"),
    "a bucket": lambda info: store_access(parse_location("gs://lake/shop"), info),
}


def connection(**extra: Any) -> ConnectionInfo:
    return ConnectionInfo("google_cloud", extra=extra)


def key(**more: str) -> dict[str, str]:
    token_uri = "https://oauth2.googleapis.com/token"
    return {"type": "service_account", "client_email": "a@p.iam", "private_key": "k", "token_uri": token_uri, **more}


@pytest.mark.parametrize("form", ["text", "object", "file", "older connection"])
def test_the_key_of_a_service_account(form: str, tmp_path: Path) -> None:
    (tmp_path / "key.json").write_text(json.dumps(key()))
    extra: dict[str, Any] = {
        "text": {"keyfile_dict": json.dumps(key())},
        "object": {"keyfile_dict": key()},
        "file": {"key_path": str(tmp_path / "key.json")},
        "older connection": {"extra__google_cloud_platform__keyfile_dict": json.dumps(key()), "num_retries": 5},
    }[form]
    info = connection(**extra)
    assert google_account(info) == "serviceAccount:a@p.iam"


def test_a_grant_names_the_impersonated_account() -> None:
    assert google_account(connection(impersonation_chain="b@p.iam, c@p.iam")) == "serviceAccount:c@p.iam"
    assert google_account(connection()) == "serviceAccount:ACCOUNT OF THE CONNECTION"


def test_an_anonymous_login_names_its_project() -> None:
    anonymous = connection(extra__google_cloud_platform__project="p", is_anonymous=True)
    found, project = google_login(anonymous, "spanner")
    assert type(found).__name__ == "AnonymousCredentials" and project == "p"


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "extra",
    [
        {"credential_config_file": "/etc/config.json"},
        {"key_secret_name": "x"},
        {"key_path": "../key.json"},
        {"keyfile_dict": "{}"},
        {"keyfile_dict": json.dumps({"type": "authorized_user"})},
        {"keyfile_dict": {"type": "external_account", "credential_source": {"executable": {"command": "evil"}}}},
        {"keyfile_dict": key(token_uri="https://elsewhere.example/token")},
        {"keyfile_dict": key(token_uri="http://oauth2.googleapis.com/token")},
        {"keyfile_dict": key(token_uri="http://127.0.0.1:80@elsewhere.example/token")},
        {"keyfile_dict": key(private_key="")},
        {"keyfile_dict": "[1]"},
        {"keyfile_dict": key(), "key_path": "/key.json"},
        {"keyfile_dict": key(), "is_anonymous": True},
        {"idp_issuer_url": "https://elsewhere.example"},
        {"is_anonymous": "perhaps"},
        {"extra__google_cloud_platform__other": "x"},
    ],
    ids=str,
)
def test_options_that_run_programs_or_ask_other_servers_are_refused(extra: dict[str, Any], reader: str) -> None:
    with pytest.raises(CheckFailed) as refused:
        READERS[reader](connection(**extra))
    assert refused.value.problems[0].code == "CON040"
    assert "evil" not in str(refused.value)


def test_one_connection_serves_a_database_and_a_bucket() -> None:
    shared = ConnectionInfo(
        "google_cloud",
        "https://bigquery-acme.p.googleapis.com",
        extra={
            "extra__google_cloud_platform__keyfile_dict": json.dumps(key(private_key="k3y", universe_domain="evil")),
            "project": "p",
            "scope": "s",
            "endpoint_url": "https://storage-acme.p.googleapis.com/",
        },
    )
    access = store_access(parse_location("gs://lake/shop"), shared)
    config = access.store_arguments()["config"]
    assert config["google_base_url"] == "https://storage-acme.p.googleapis.com"
    assert "k3y" in config["google_service_account_key"] and "evil" not in str(config)
    assert google_account(shared) == "serviceAccount:a@p.iam"


def codes(host: str, port: int | None = None) -> list[str]:
    return [problem.code for problem in google_tls_warnings(ConnectionInfo("c", host, port))]


def test_an_unencrypted_endpoint_is_reported() -> None:
    assert codes("http://127.0.0.1", 9050) == ["CON041"]
    assert codes("bigquery-x.p.googleapis.com") == codes("") == []
