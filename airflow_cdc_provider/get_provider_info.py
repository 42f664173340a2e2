"""The provider's metadata for Airflow. Imports nothing: an error here would break every ``airflow`` command."""

from __future__ import annotations

from typing import Any

INTEGRATION = "Change Data Capture"
HOOKS = "airflow_cdc_provider.hooks.connection_types"


def _field(label: str, description: str = "", kind: str = "string", **schema: Any) -> dict[str, Any]:
    return {"label": label, "description": description, "schema": {"type": [kind, "null"], **schema}}


def _secret(label: str, description: str = "") -> dict[str, Any]:
    return _field(label, description, format="password")


def _test_with(example: str) -> dict[str, Any]:
    return {"test_with": _field("Test with", f"Only for the test of the connection, as JSON: {example}", "object")}


def _type(name: str, hook: str, title: str, fields: dict[str, Any], **standard: str) -> dict[str, Any]:
    """``fields``: stored in the extra. ``standard``: the fields of every connection that this type uses, with their
    labels; the others are hidden."""
    return {
        "connection-type": name,
        "hook-class-name": f"{HOOKS}.{hook}",
        "hook-name": f"CDC: {title}",
        "ui-field-behaviour": {
            "hidden-fields": [one for one in ("host", "port", "login", "password", "schema") if one not in standard],
            "relabeling": standard,
            "placeholders": {},
        },
        "conn-fields": fields,
    }


SALESFORCE = {
    "consumer_key": _field("Consumer key", "Of the external client app."),
    "consumer_secret": _secret(
        "Consumer secret", "For client credentials; for a refresh token if the app requires it."
    ),
    "instance_url": _field("My Domain", "https://acme.my.salesforce.com; required for client credentials."),
    "domain": _field("Domain", "In place of the URL: acme.my, or test for a sandbox."),
    "private_key": _secret("Private key", "For JWT: PEM; the login is the name of the user."),
    "private_key_file_path": _field("File of the private key", "On every host, in place of the key itself."),
    "refresh_token": _secret("Refresh token"),
    "refresh_token_file": _field("File of the refresh token", "For apps that rotate refresh tokens: on every host."),
    "organization_id": _field("Organization id", "A login to another org is refused."),
    **_test_with('{"channel": "/data/CRM__chn", "environment": "sandbox"}'),
}

KAFKA = {
    "bootstrap.servers": _field("Servers", "k1:9093,k2:9093"),
    "security.protocol": _field(
        "Protocol", "PLAINTEXT by default.", enum=["PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SSL", None]
    ),
    "sasl.mechanism": _field("SASL mechanism", "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or GSSAPI."),
    "sasl.oauthbearer.method": _field("OAuth method", "oidc"),
    "sasl.oauthbearer.token.endpoint.url": _field("OAuth token server", "https://…"),
    "sasl.oauthbearer.client.id": _field("OAuth client id"),
    "sasl.oauthbearer.client.secret": _secret("OAuth client secret"),
    "sasl.oauthbearer.scope": _field("OAuth scope"),
    "ssl.ca.location": _field("File of the authority", "PEM, on every host; by default the authorities of the host."),
    "ssl.certificate.location": _field("File of the client certificate", "PEM, on every host."),
    "ssl.key.location": _field("File of the client key", "PEM, on every host."),
    "ssl.key.password": _secret("Password of the client key"),
    **_test_with('{"topics": ["srv.*"]}'),
}

ICEBERG = {
    "warehouse": _field("Warehouse", "As the catalog names it."),
    "prefix": _field("Prefix", "Of the paths of the catalog's API."),
    "token": _secret("Token", "In place of login and password."),
    "scope": _field("OAuth scope"),
    "oauth2-server-uri": _field("OAuth token server", "By default /v1/oauth/tokens of the catalog."),
    "s3.endpoint": _field("S3 endpoint", "Of a store other than AWS."),
    "s3.region": _field("S3 region"),
    "s3.access-key-id": _field("S3 access key", "If the catalog's answers contain no credentials."),
    "s3.secret-access-key": _secret("S3 secret key"),
    "s3.session-token": _secret("S3 session token"),
    "gcs.project-id": _field("Cloud Storage project"),
    "adls.account-name": _field("Azure account"),
    "adls.sas-token": _secret("Azure SAS"),
    **_test_with('{"catalog": "lake.shop", "storage": "s3"}'),
}

S3 = {
    "endpoint_url": _field("Endpoint", "Of a store other than AWS: https://host"),
    "region_name": _field("Region"),
    "aws_session_token": _secret("Session token", "Of temporary credentials."),
    **_test_with('{"location": "s3://bucket/path"}'),
}

CLOUD_STORAGE = {
    "keyfile_dict": _secret("Key of the service account", "JSON. Without a key: the login of the host."),
    "key_path": _field("File of the key", "On every host, in place of the key itself."),
    "is_anonymous": _field("Without login", "", "boolean"),
    "endpoint_url": _field("Endpoint", "Of a private network: https://host"),
    **_test_with('{"location": "gs://bucket/path"}'),
}

AZURE = {
    "shared_access_key": _secret("Key of the account"),
    "sas_token": _secret("SAS"),
    "tenant_id": _field("Tenant", "Of an application of Entra ID, whose id and secret are login and password."),
    "managed_identity_client_id": _field("Managed identity", "If the host has several."),
    "workload_identity_tenant_id": _field("Tenant of the workload identity"),
    **_test_with('{"location": "abfss://container@account.dfs.core.windows.net/path"}'),
}

ACCESS_KEY = {"login": "Access key", "password": "Secret key"}
APPLICATION = {"login": "Application", "password": "Secret, or key of the account"}

CONNECTION_TYPES = [
    _type("cdc_salesforce", "SalesforceConnectionHook", "Salesforce", SALESFORCE, login="User of the JWT"),
    _type("cdc_kafka", "KafkaConnectionHook", "Kafka", KAFKA, login="SASL user", password="SASL password"),
    _type(
        "cdc_iceberg",
        "IcebergConnectionHook",
        "Iceberg REST catalog",
        ICEBERG,
        host="URL of the catalog",
        login="Client id",
        password="Client secret",
    ),
    _type("cdc_s3", "S3ConnectionHook", "bucket in S3", S3, **ACCESS_KEY),
    _type("cdc_gcs", "CloudStorageConnectionHook", "bucket in Cloud Storage", CLOUD_STORAGE),
    _type("cdc_azure", "AzureConnectionHook", "container in Azure", AZURE, **APPLICATION),
]


def get_provider_info() -> dict[str, Any]:
    return {
        "package-name": "airflow-cdc-provider",
        "name": INTEGRATION,
        "description": "Exact copies of source tables in lakehouse and warehouse tables, run by Airflow and Spark.",
        "integrations": [
            {
                "integration-name": INTEGRATION,
                "external-doc-url": "https://www.postgresql.org/docs/current/logical-replication.html",
                "tags": ["software"],
            }
        ],
        "operators": [
            {
                "integration-name": INTEGRATION,
                "python-modules": [
                    "airflow_cdc_provider.operators.spark",
                    "airflow_cdc_provider.operators.window",
                    "airflow_cdc_provider.operators.reconcile",
                    "airflow_cdc_provider.operators.monitor",
                ],
            }
        ],
        "sensors": [
            {"integration-name": INTEGRATION, "python-modules": ["airflow_cdc_provider.sensors.changes"]},
        ],
        "triggers": [
            {"integration-name": INTEGRATION, "python-modules": ["airflow_cdc_provider.triggers.changes"]},
        ],
        "hooks": [
            {
                "integration-name": INTEGRATION,
                "python-modules": ["airflow_cdc_provider.hooks.connections", HOOKS, "airflow_cdc_provider.hooks.spark"],
            }
        ],
        "connection-types": CONNECTION_TYPES,
        "extra-links": [
            "airflow_cdc_provider.links.replicator.ReplicatorLink",
            "airflow_cdc_provider.links.spark_history.SparkHistoryLink",
        ],
        "cli": ["airflow_cdc_provider.cli.commands.get_cli_commands"],
    }
