"""Which properties the connection of a REST catalog may pass to the two libraries of Iceberg."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.targets.iceberg.catalog import catalog_location, pyiceberg_properties, spark_settings

REST = Target("iceberg", connection="rest", catalog="lake.cdc")


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
    extra = {"warehouse": "w", "s3.path-style-access": True, "s3.endpoint": "https://store"}
    location = catalog_location(REST, ConnectionInfo("rest", "https://catalog/", extra=extra))
    allowed = {"warehouse": "w", "s3.path-style-access": "true", "s3.endpoint": "https://store"}
    assert pyiceberg_properties(location) == {"type": "rest", "uri": "https://catalog", **allowed}
    settings = spark_settings(location)
    assert {name: settings[f"spark.sql.catalog.lake.{name}"] for name in allowed} == allowed
    assert settings["spark.sql.catalog.lake.cache-enabled"] == "false"
