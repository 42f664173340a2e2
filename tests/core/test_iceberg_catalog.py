"""Which properties the connection of a REST catalog may pass to the two libraries of Iceberg."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.targets.iceberg.catalog import catalog_location, pyiceberg_properties, spark_settings
from airflow_cdc_provider.targets.iceberg.store_properties import http_warnings

REST = Target("iceberg", connection="rest", catalog="lake.cdc")
REST_PROPERTIES = {"type": "rest", "uri": "https://catalog", "header.X-Iceberg-Access-Delegation": "vended-credentials"}
REST_SETTINGS = {
    **REST_PROPERTIES,
    "cache-enabled": "false",
    "s3.client-factory-impl": "org.apache.iceberg.aws.s3.DefaultS3FileIOAwsClientFactory",
}


@pytest.mark.parametrize(
    "key",
    [
        "py-io-impl",
        "io-impl",
        "py-catalog-impl",
        "catalog-impl",
        "metrics-reporter-impl",
        "s3.client-factory-impl",
        "s3.retry-strategy-impl",
        "client.factory",
        "client.credentials-provider",
        "client.profile-name",
        "rest.auth.type",
        "auth",
        "auth.impl",
        "encryption.kms-impl",
        "lock-impl",
        "write.py-location-provider.impl",
        "s3.signer",
        "s3.remote-signing-enabled",
        "adls.client-secret",
        "s3.proxy-uri",
        "gcs.session-kwargs",
        "hdfs.kerberos_ticket",
        "ssl",
        "type",
        "uri",
        "cache-enabled",
    ],
)
def test_a_property_that_names_a_class_or_overrides_ours_is_refused(key: str) -> None:
    info = ConnectionInfo("rest", "https://catalog", extra={key: "os.path", "warehouse": "w"})
    with pytest.raises(CheckFailed, match=r"CON040 .*extra of connection rest") as caught:
        catalog_location(REST, info)
    assert caught.value.problems[0].found == key
    assert "s3.endpoint" in caught.value.problems[0].allowed


def test_allowed_properties_reach_both_libraries() -> None:
    assert properties({"warehouse": "w", "s3.endpoint": "https://store", "s3.session-token": "t"}) == (
        {**REST_PROPERTIES, "warehouse": "w", "s3.endpoint": "https://store", "s3.session-token": "t"},
        {
            **REST_SETTINGS,
            "warehouse": "w",
            "s3.endpoint": "https://store",
            "s3.session-token": "t",
            "s3.path-style-access": "true",
            "client.region": "us-east-1",
        },
    )


@pytest.mark.parametrize(
    ("extra", "python", "java"),
    [
        ({"s3.region": "eu-west-1"}, {}, {"client.region": "eu-west-1"}),
        ({"client.region": "eu-west-1"}, {}, {}),
        ({"s3.path-style-access": False}, {"s3.force-virtual-addressing": "true"}, {}),
        (
            {"adls.account-name": "acme", "adls.account-key": "k"},
            {},
            {"adls.auth.shared-key.account.name": "acme", "adls.auth.shared-key.account.key": "k"},
        ),
        (
            {"adls.account-name": "acme", "adls.sas-token": "s"},
            {},
            {f"adls.sas-token.acme.{kind}.core.windows.net": "s" for kind in ("dfs", "blob")},
        ),
    ],
)
def test_each_library_gets_a_property_under_its_own_name(
    extra: dict[str, object], python: dict[str, str], java: dict[str, str]
) -> None:
    given = {name: str(value).lower() for name, value in extra.items()}
    assert properties(extra) == ({**REST_PROPERTIES, **given, **python}, {**REST_SETTINGS, **given, **java})


@pytest.mark.parametrize(
    ("secret", "other"),
    [
        ("adls.account-key", "adls.account-name"),
        ("adls.sas-token", "adls.account-name"),
        ("gcs.oauth2.token", "gcs.oauth2.token-expires-at"),
        ("s3.secret-access-key", "s3.access-key-id"),
    ],
)
def test_one_half_of_a_credential_is_refused(secret: str, other: str) -> None:
    with pytest.raises(CheckFailed, match=rf"CON040.*{secret} without {other}") as caught:
        properties({secret: "c2VjcmV0"})
    assert "c2VjcmV0" not in str(caught.value)


def test_a_catalog_or_store_on_another_host_without_tls_is_a_warning() -> None:
    extra = {"s3.endpoint": "http://store:9000", "gcs.service.host": "https://storage"}
    found = [
        one.found for one in http_warnings("http://catalog", ConnectionInfo("rest", "http://catalog", extra=extra))
    ]
    assert found == ["host: http", "s3.endpoint: http"]
    local = {"s3.endpoint": "http://127.0.0.1:9000"}
    assert http_warnings("http://127.0.0.1:80", ConnectionInfo("rest", extra=local)) == []


def properties(extra: dict[str, object]) -> tuple[dict[str, str], dict[str, str]]:
    """Of pyiceberg, and of the catalog in Spark."""
    location = catalog_location(REST, ConnectionInfo("rest", "https://catalog/", extra=extra))
    prefix = "spark.sql.catalog.lake"
    settings = {name.removeprefix(f"{prefix}."): value for name, value in spark_settings(location).items()}
    assert settings.pop(prefix) == "org.apache.iceberg.spark.SparkCatalog"
    return pyiceberg_properties(location), settings
