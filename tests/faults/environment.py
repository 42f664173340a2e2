"""The environment of all cases: servers, a Spark session, a folder."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_cdc_provider.core.errors import NotInstalled
from airflow_cdc_provider.logstore import class_path
from airflow_cdc_provider.sandbox.bigquery import EmbeddedBigQuery
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from airflow_cdc_provider.sandbox.server import EmbeddedServer
from spark_jobs.runtime.sessions import TARGET_SETTINGS, build_session
from tests.faults.runner import FaultRunner
from tests.spark.replicator import JAVA_OPTIONS, LOCAL

WAREHOUSES: dict[str, Callable[[], EmbeddedServer]] = {"mysql": EmbeddedMariaDB, "bigquery": EmbeddedBigQuery}
SERVER_SETTINGS = {"max_replication_slots": "40", "max_wal_senders": "40", "max_connections": "200"}


def session(java_options: str = "") -> SparkSession:
    """For the steps without an injection, on every target."""
    logging.getLogger("py4j").setLevel(logging.WARNING)
    conf = {
        **LOCAL,
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} {java_options}",
        "spark.driver.extraClassPath": ":".join(map(str, class_path(("delta", "iceberg", "mysql", "postgres")))),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.extensions": ",".join(
            TARGET_SETTINGS[kind]["spark.sql.extensions"] for kind in ("delta", "iceberg")
        ),
    }
    return build_session("faults", "delta", conf)


@contextlib.contextmanager
def fault_runner(
    server: EmbeddedPostgres, warehouses: Mapping[str, EmbeddedServer], seed: int
) -> Iterator[FaultRunner]:
    with (
        tempfile.TemporaryDirectory(prefix="cdc-faults-") as folder,
        FaultRunner(Path(folder), server, warehouses, seed) as made,
    ):
        yield made


@contextlib.contextmanager
def installed_warehouses() -> Iterator[dict[str, EmbeddedServer]]:
    """The servers of those targets that have one, by the type of the target. In CI all must be installed."""
    with contextlib.ExitStack() as stack:
        found: dict[str, EmbeddedServer] = {}
        for target, kind in WAREHOUSES.items():
            try:
                found[target] = stack.enter_context(kind())
            except NotInstalled as error:
                if os.environ.get("CI"):
                    raise
                print(f"skipped: {error}", flush=True)
        yield found
