"""The Spark session of a job: only what must be set inside; master, memory and jars come from ``spark-submit``."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from threading import Lock

from pyspark import SparkConf
from pyspark.sql import SparkSession

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.scheduler.mode": "FAIR",
    "spark.executor.heartbeatInterval": "5s",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Texts of plans, and of places in our code, cost a tenth of a small batch; nobody reads them.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.debug.maxToStringFields": "0",
    "spark.sql.dataFrameQueryContext.enabled": "false",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}

TARGET_SETTINGS: dict[str, dict[str, str]] = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.delta.logStore.file.impl": "airflow_cdc_provider.logstore.HardLinkLogStore",
        "spark.delta.logStore.s3.impl": "airflow_cdc_provider.logstore.ConditionalLogStore",
    },
    "iceberg": {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        # Spark's own pattern, and the word by which a REST catalog is told its key.
        "spark.redaction.regex": "(?i)secret|password|passwd|token|access[.]?key|credential",
    },
}

NEEDLESS_WARNINGS = (
    "org.apache.spark.scheduler.FairSchedulableBuilder",  # of each pool that has no figures of its own
    "org.apache.spark.util.SparkStringUtils",  # of texts cut short
)

FEW_ROWS = 50_000
"""Up to so many rows go without compiled code: in a new JVM the compiler would take longer than the rows."""


class Application:
    """Spark, started when it is first asked for: a small batch may need none of it. ``started``: what came of it.
    ``master``: asked where it runs, or would."""

    def __init__(self, start: Callable[[], SparkSession], master: Callable[[], str]) -> None:
        self._start = start
        self._master = master
        self._starting = Lock()
        self.started: SparkSession | Exception | None = None

    @cached_property
    def local_cores(self) -> int:
        """How many of this machine Spark has, or would have; 0 where it has others."""
        return local_cores(self._master())

    @property
    def session(self) -> SparkSession:
        """Raises what starting it raises, and does not try again."""
        with self._starting:
            if self.started is None:
                try:
                    self.started = self._start()
                except Exception as error:
                    self.started = error
            if isinstance(self.started, Exception):
                raise self.started
            return self.started


def build(name: str, target_type: str, conf: dict[str, str] | None = None) -> SparkSession:
    """The session of this process. ``conf`` adds to the settings; tests give their master there."""
    builder = SparkSession.builder.appName(name)
    for key, value in {**SETTINGS, **TARGET_SETTINGS.get(target_type, {}), **(conf or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    log4j = spark.sparkContext._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    for name in NEEDLESS_WARNINGS:
        log4j.core.config.Configurator.setLevel(name, log4j.Level.ERROR)
    return spark


def master_of(conf: Mapping[str, str]) -> str:
    """Told by ``spark-submit``, if not by ``conf``. Asking needs its JVM, and no session."""
    return conf.get("spark.master") or str(SparkConf().get("spark.master", "local[*]"))


def local_cores(master: str) -> int:
    found = re.fullmatch(r"local(?:\[(\*|\d+)(?:,\d+)?\])?", master)
    if found is None:
        return 0
    return len(os.sched_getaffinity(0)) if found[1] == "*" else int(found[1] or 1)


def fresh(spark: SparkSession) -> SparkSession:
    """A session with settings of its own on the same application: commit tokens are session settings."""
    session = spark.newSession()
    # A value that does not fit its type must fail the job, whatever the operator's settings: else it becomes NULL.
    session.conf.set("spark.sql.ansi.enabled", "true")
    session.conf.set("spark.sql.shuffle.partitions", str(2 * cores(spark)))
    return session


def interpreted(spark: SparkSession) -> None:
    """Let a session go through its expressions instead of compiling them."""
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")


def cores(spark: SparkSession) -> int:
    return int(spark.sparkContext.defaultParallelism)
