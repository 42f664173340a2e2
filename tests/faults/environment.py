"""The environment of all cases: servers, a Spark session, a folder."""

from __future__ import annotations

import contextlib
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_cdc_provider.logstore import class_path
from spark_jobs.runtime.sessions import TARGET_SETTINGS, build_session
from tests.faults.runner import FaultRunner
from tests.faults.servers import Servers
from tests.spark.replicator import JAVA_OPTIONS, LOCAL

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
    return build_session("faults", ["delta"], conf)


@contextlib.contextmanager
def fault_runner(servers: Servers, seed: int) -> Iterator[FaultRunner]:
    with (
        tempfile.TemporaryDirectory(prefix="cdc-faults-") as folder,
        FaultRunner(Path(folder), servers, seed) as made,
    ):
        yield made
