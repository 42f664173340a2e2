"""How Spark accesses object stores: Hadoop's file systems, configured in the process that has the secrets.

Configured after the session has started: settings in Hadoop's own configuration travel to executors inside tasks, and
do not appear in any setting that Spark shows, logs or writes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.storage.locations import parse_location
from airflow_cdc_provider.core.storage.stores import STORES, store_access


def configure_object_stores(spark: SparkSession, definition: Definition, secrets: Secrets) -> None:
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    for name, value in hadoop_settings(definition, secrets, os.environ).items():
        hadoop.set(name, value)


def hadoop_settings(definition: Definition, secrets: Secrets, environment: Mapping[str, str]) -> dict[str, str]:
    """For the locations of staging and targets; empty where all are folders."""
    settings: dict[str, str] = {}
    targets = ((parse_location(one.location), secrets.of_target(one.name).target) for one in definition.all_targets)
    for location, connection in ((parse_location(definition.staging.location), secrets.staging), *targets):
        if location.scheme in STORES:
            settings |= store_access(location, connection).hadoop_settings(environment)
    return settings
