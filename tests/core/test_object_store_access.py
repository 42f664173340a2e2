"""What the three libraries get from the Airflow connection of an object store, and which connections are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets, TargetSecrets
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.storage.access import require_own_credentials
from airflow_cdc_provider.core.storage.locations import Location, parse_location
from airflow_cdc_provider.core.storage.stores import STORES, store_access, store_arguments, store_tls_warnings
from spark_jobs.runtime.object_stores import hadoop_settings

GS = parse_location("gs://lake/shop")
HOST = "acme.dfs.core.windows.net"
AZURE = parse_location(f"abfss://lake@{HOST}/shop")
KEY = {
    "type": "service_account",
    "project_id": "p",
    "private_key_id": "1",
    "private_key": "-----BEGIN PRIVATE KEY-----\nsecret\n",
    "client_email": "cdc@p.iam.gserviceaccount.com",
    "token_uri": "https://oauth2.googleapis.com/token",
}


def google(**extra: Any) -> ConnectionInfo:
    return ConnectionInfo("g", extra=extra)


def azure(login: str = "", password: str = "", host: str = "", **extra: Any) -> ConnectionInfo:
    return ConnectionInfo("a", host, login=login, password=password, extra=extra)


def hadoop(location: Location, connection: ConnectionInfo, **environment: str) -> dict[str, str]:
    return store_access(location, connection).hadoop_settings(environment)


def test_a_location_has_the_bucket_and_the_account_that_credentials_belong_to() -> None:
    assert (AZURE.bucket, AZURE.path, AZURE.account) == ("lake", "shop", "acme")
    assert AZURE.credentials_scope == parse_location("abfss://other@acme.dfs.core.windows.net").credentials_scope
    assert GS.credentials_scope == parse_location("gs://other").credentials_scope
    assert parse_location("s3://a").credentials_scope != parse_location("s3://b").credentials_scope


@pytest.mark.parametrize("key", [KEY, json.dumps(KEY)], ids=["object", "text"])
def test_the_key_of_a_service_account_reaches_all_three(key: Any) -> None:
    access = store_access(GS, google(keyfile_dict=key))
    assert (
        json.loads(access.store_arguments()["config"]["google_service_account_key"])["client_email"]
        == KEY["client_email"]
    )
    assert json.loads(access.delta_options()["google_service_account_key"])["private_key"] == KEY["private_key"]
    settings = access.hadoop_settings({})
    assert settings["fs.gs.auth.type"] == "ACCESS_TOKEN_PROVIDER"
    assert [name for name, value in settings.items() if "secret" in value] == ["fs.gs.airflow.cdc.service.account.key"]


def test_a_key_file_and_the_identity_of_the_environment_are_named_and_not_read() -> None:
    access = store_access(GS, google(key_path="/keys/cdc.json", project="p", num_retries=5, scope="x"))
    assert access.store_arguments()["config"] == {"google_service_account": "/keys/cdc.json"}
    assert access.hadoop_settings({})["fs.gs.auth.service.account.json.keyfile"] == "/keys/cdc.json"
    ambient = store_access(GS, ConnectionInfo())
    assert (ambient.store_arguments()["config"], ambient.delta_options()) == ({}, {})
    assert ambient.hadoop_settings({})["fs.gs.auth.type"] == "APPLICATION_DEFAULT"


def test_fields_of_a_key_that_name_servers_are_not_passed_on() -> None:
    given = {**KEY, "gcs_base_url": "https://evil", "disable_oauth": True, "universe_domain": "evil"}
    access = store_access(GS, google(keyfile_dict=given))
    assert "evil" not in f"{access.store_arguments()} {access.delta_options()} {access.hadoop_settings({})}"
    assert "disable_oauth" not in access.delta_options()["google_service_account_key"]


@pytest.mark.parametrize(
    ("extra", "found"),
    [
        ({"impersonation_chain": "other@p.iam"}, "impersonation_chain"),
        ({"endpoint_url": "http://store.example"}, "endpoint_url without https"),
        ({"endpoint_url": "http://127.0.0.1:80@store.example"}, "endpoint_url without https"),
        ({"key_path": "../key.json"}, "key_path"),
    ],
)
def test_settings_of_google_that_would_have_no_effect_or_send_a_token_unencrypted_are_refused(
    extra: dict[str, Any], found: str
) -> None:
    with pytest.raises(CheckFailed, match=f"CON040.*connection g .*{found}"):
        store_access(GS, google(**extra))


@pytest.mark.parametrize(
    "connection",
    [azure("acme", "k3y"), azure(shared_access_key="k3y"), azure("acme", account_key="k3y"), azure(password="k3y")],
)
def test_the_key_of_an_account_reaches_all_three(connection: ConnectionInfo) -> None:
    access = store_access(AZURE, connection)
    arguments = access.store_arguments()
    assert (arguments["container_name"], arguments["prefix"]) == ("lake", "shop")
    assert arguments["config"]["azure_storage_account_key"] == "k3y"
    assert arguments["config"]["azure_credential_type"] == "access_key"
    assert access.delta_options()["azure_storage_account_key"] == "k3y"
    assert access.hadoop_settings({})[f"fs.azure.account.key.{HOST}"] == "k3y"


def test_a_shared_access_signature_reaches_all_three_without_its_question_mark() -> None:
    access = store_access(AZURE, azure("acme", sas_token="?sv=1&sig=x"))
    assert access.store_arguments()["config"]["azure_storage_sas_key"] == "sv=1&sig=x"
    settings = access.hadoop_settings({})
    assert settings[f"fs.azure.account.auth.type.{HOST}"] == "SAS"
    assert settings[f"fs.azure.sas.fixed.token.{HOST}"] == "sv=1&sig=x"


def test_an_application_of_entra_reaches_all_three() -> None:
    access = store_access(AZURE, azure("app", "s3cret", "https://acme.blob.core.windows.net/", tenant_id="t"))
    config = access.store_arguments()["config"]
    assert (config["azure_client_id"], config["azure_client_secret"], config["azure_tenant_id"]) == (
        "app",
        "s3cret",
        "t",
    )
    settings = access.hadoop_settings({})
    assert settings[f"fs.azure.account.oauth2.client.endpoint.{HOST}"].endswith("/t/oauth2/token")
    assert settings[f"fs.azure.account.oauth2.client.secret.{HOST}"] == "s3cret"


def test_without_credentials_the_identity_is_that_of_the_pod_or_else_of_the_machine() -> None:
    pod = hadoop(AZURE, ConnectionInfo(), AZURE_FEDERATED_TOKEN_FILE="/var/token")
    assert pod[f"fs.azure.account.oauth.provider.type.{HOST}"].endswith("WorkloadIdentityTokenProvider")
    assert pod[f"fs.azure.account.oauth2.client.id.{HOST}"] == "${env.AZURE_CLIENT_ID}"
    machine = hadoop(AZURE, azure(managed_identity_client_id="id"))
    assert machine[f"fs.azure.account.oauth.provider.type.{HOST}"].endswith("MsiTokenProvider")
    assert machine[f"fs.azure.account.oauth2.client.id.{HOST}"] == "id"


def test_the_endpoint_of_a_location_says_whether_its_account_has_a_hierarchical_namespace() -> None:
    flat = hadoop(parse_location("abfss://lake@acme.blob.core.windows.net/x"), azure("acme", "k"))
    assert flat["fs.azure.account.hns.enabled.acme.blob.core.windows.net"] == "false"
    assert not [name for name in hadoop(AZURE, azure("acme", "k")) if "hns" in name]


@pytest.mark.parametrize(
    ("connection", "found"),
    [
        (azure("other", "k"), "the storage account other"),
        (azure("acme", "k", "https://other.blob.core.windows.net"), "the storage account other"),
        (azure("acme", "k", "https://acme.evil.example"), "no account of Azure"),
        (azure("acme", "k", "http://127.0.0.1:80@evil.example/acme"), "no account of Azure"),
        (azure("acme", "k", "http://acme.blob.core.windows.net"), "no account of Azure|the storage account"),
        (azure("acme", "k", sas_token="s"), "password and sas_token"),
        (azure("app", tenant_id="t"), "tenant_id without a secret"),
    ],
)
def test_settings_of_azure_that_would_have_no_effect_or_belong_to_another_account_are_refused(
    connection: ConnectionInfo, found: str
) -> None:
    with pytest.raises(CheckFailed, match=f"CON020.*connection a .*({found})"):
        store_access(AZURE, connection)


@pytest.mark.parametrize(
    ("location", "connection"),
    [
        (parse_location("s3://lake/shop"), ConnectionInfo("lake", extra={"role_arn": "arn:x"})),
        (GS, google(credential_source="x")),
        (AZURE, azure(connection_string="AccountKey=k")),
    ],
)
def test_an_option_that_is_not_allowed_is_named(location: Location, connection: ConnectionInfo) -> None:
    (option,) = connection.extra
    with pytest.raises(CheckFailed, match=f"CON040.*connection {connection.connection_id} .*found: {option}"):
        store_access(location, connection)


@pytest.mark.parametrize(
    ("location", "connection", "variable"),
    [
        (GS, google(keyfile_dict=KEY), "GOOGLE_BEARER_TOKEN"),
        (AZURE, azure("acme", "k"), "AZURE_STORAGE_TOKEN"),
        (AZURE, azure("acme", sas_token="s"), "AZURE_FEDERATED_TOKEN_FILE"),
        (AZURE, azure("app", "s", tenant_id="t"), "AZURE_FEDERATED_TOKEN_FILE"),
    ],
)
def test_credentials_of_the_environment_that_would_replace_those_of_the_connection_are_reported(
    location: Location, connection: ConnectionInfo, variable: str
) -> None:
    access = store_access(location, connection)
    require_own_credentials(access, connection, {variable: ""})
    with pytest.raises(CheckFailed, match=f"CON021.*unset {variable}") as caught:
        require_own_credentials(access, connection, {variable: "v4lue"})
    assert "v4lue" not in str(caught.value)
    require_own_credentials(store_access(location, ConnectionInfo()), ConnectionInfo(), {variable: "v4lue"})


def test_the_store_of_google_would_use_a_token_of_the_environment_so_that_it_is_refused_at_once() -> None:
    with pytest.raises(CheckFailed, match="CON021"):
        store_arguments(GS, google(keyfile_dict=KEY), {"GOOGLE_BEARER_TOKEN": "t"})
    assert store_arguments(AZURE, azure("acme", "k"), {"AZURE_STORAGE_TOKEN": "t"})[0] == "AzureStore"


@pytest.mark.parametrize("scheme", STORES)
def test_no_text_of_an_access_contains_its_secret(scheme: str) -> None:
    location = {"s3": parse_location("s3://lake/x"), "gs": GS, "abfss": AZURE}[scheme]
    connection = google(keyfile_dict=KEY) if scheme == "gs" else azure("acme", "secret")
    assert "secret" not in repr(store_access(location, connection))


@pytest.mark.parametrize(
    ("endpoint", "codes"),
    [("http://minio.example:9000", ["CON041"]), ("https://minio.example", []), ("http://127.0.0.1:9000", []), ("", [])],
)
def test_a_store_on_another_host_without_tls_is_reported(endpoint: str, codes: list[str]) -> None:
    connection = ConnectionInfo("minio", extra={"endpoint_url": endpoint})
    assert [warning.code for warning in store_tls_warnings("s3://lake/shop", connection)] == codes
    assert store_tls_warnings("/lake/shop", connection) == []


def test_a_target_whose_connection_cannot_be_used_has_no_settings_and_hides_none() -> None:
    bad, good = ConnectionInfo("bad", extra={"role_arn": "arn:x"}), ConnectionInfo("good", login="key", password="s")
    targets = (Target("delta", "s3://one/lake"), Target("delta", "s3://two/lake", name="b"))
    tables, staging = (TableRule("t"),), Staging("/staging")
    both = Definition(name="shop", source=Source("files"), targets=targets, tables=tables, staging=staging)
    secrets = {"default": TargetSecrets(bad), "b": TargetSecrets(good)}
    settings = hadoop_settings(both, Secrets(targets=secrets), {})
    assert settings == hadoop_settings(replace(both, targets=targets[1:]), Secrets(targets=secrets), {}) != {}
