"""How Spark accesses object stores: Hadoop's file systems, configured in the process that has the secrets.

Configured after the session has started: settings in Hadoop's own configuration travel to executors inside tasks, and
do not appear in any setting that Spark shows, logs or writes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.storage.locations import parse_location
from airflow_cdc_provider.core.storage.stores import STORES, store_access


def configure_object_stores(spark: SparkSession, definition: Definition, secrets: Secrets) -> None:
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    for name, value in hadoop_settings(definition, secrets, os.environ).items():
        hadoop.set(name, value)


def hadoop_settings(definition: Definition, secrets: Secrets, environment: Mapping[str, str]) -> dict[str, str]:
    """For the locations of staging and targets; empty where all are folders. A target whose connection cannot be used
    has none: each of its copies fails by itself."""
    settings = _settings_of(definition.staging.location, secrets.staging, environment)
    for target in definition.all_targets:
        with contextlib.suppress(CheckFailed):
            settings |= _settings_of(target.location, secrets.of_target(target.name).target, environment)
    return settings


def _settings_of(where: str, connection: ConnectionInfo, environment: Mapping[str, str]) -> dict[str, str]:
    location = parse_location(where)
    return store_access(location, connection).hadoop_settings(environment) if location.scheme in STORES else {}
