"""How Spark accesses buckets: Hadoop's S3A, configured per bucket, in the process that has the secrets.

Configured after the session has started: settings in Hadoop's own configuration travel to executors inside tasks, and
do not appear in any setting that Spark shows, logs or writes.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.storage.locations import S3, parse_location
from airflow_cdc_provider.core.storage.s3 import S3Access, s3_access

S3A = "org.apache.hadoop.fs.s3a"
SDK = "software.amazon.awssdk.auth.credentials"
ENVIRONMENT_PROVIDERS = (
    f"{SDK}.EnvironmentVariableCredentialsProvider",
    f"{SDK}.WebIdentityTokenFileCredentialsProvider",
    f"{S3A}.auth.IAMInstanceCredentialsProvider",
)


def configure_buckets(spark: SparkSession, definition: Definition, secrets: Secrets) -> None:
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    for name, value in hadoop_settings(definition, secrets).items():
        hadoop.set(name, value)


def hadoop_settings(definition: Definition, secrets: Secrets) -> dict[str, str]:
    """For the buckets of staging and target; empty where both are folders."""
    endpoints = ((definition.staging.location, secrets.staging), (definition.target.location, secrets.target))
    buckets = {
        parse_location(location).bucket: s3_access(connection)
        for location, connection in endpoints
        if parse_location(location).scheme == S3
    }
    # The YAML uses the scheme s3, like other engines, so S3A is registered for it, too.
    settings = {"fs.s3.impl": f"{S3A}.S3AFileSystem"} if buckets else {}
    for bucket, access in buckets.items():
        settings |= {f"fs.s3a.bucket.{bucket}.{name}": value for name, value in _settings(access).items()}
    return settings


def _settings(access: S3Access) -> dict[str, str]:
    # Delta's log store depends on it, whatever the cluster's default is.
    settings = {"create.conditional.enabled": "true"}
    if access.key:
        kind = "TemporaryAWSCredentialsProvider" if access.token else "SimpleAWSCredentialsProvider"
        settings |= {
            "aws.credentials.provider": f"{S3A}.{kind}",
            "access.key": access.key,
            "secret.key": access.secret,
            "session.token": access.token,
        }
    else:
        settings["aws.credentials.provider"] = ",".join(ENVIRONMENT_PROVIDERS)
    if access.endpoint:
        settings |= {"endpoint": access.endpoint, "path.style.access": "true"}
    if access.region:
        settings["endpoint.region"] = access.region
    return settings
