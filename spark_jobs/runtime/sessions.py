"""The Spark session of a job: only settings that must be set in the application; ``spark-submit`` sets master, memory
and jars.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from threading import Lock

from pyspark import SparkConf
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.statement_settings import STATEMENT_SETTINGS

SETTINGS = {
    **STATEMENT_SETTINGS,
    "spark.ui.showConsoleProgress": "false",
    "spark.scheduler.mode": "FAIR",
    "spark.executor.heartbeatInterval": "5s",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Plan descriptions and call sites, which are never displayed, cost a tenth of the time of a small batch.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.debug.maxToStringFields": "0",
    "spark.sql.dataFrameQueryContext.enabled": "false",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}

EXTENSIONS = "spark.sql.extensions"
TARGET_SETTINGS: dict[str, dict[str, str]] = {
    "delta": {
        EXTENSIONS: "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.delta.logStore.file.impl": "airflow_cdc_provider.logstore.HardLinkLogStore",
        "spark.delta.logStore.s3.impl": "airflow_cdc_provider.logstore.ConditionalLogStore",
        # Delta's own, which are conditional: an upload with a precondition, a rename that replaces nothing.
        "spark.delta.logStore.gs.impl": "io.delta.storage.GCSLogStore",
        "spark.delta.logStore.abfss.impl": "io.delta.storage.AzureLogStore",
    },
    "iceberg": {
        EXTENSIONS: "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        # Spark's default pattern, extended by the settings that hold the credentials of a REST catalog and its store.
        "spark.redaction.regex": "(?i)secret|password|passwd|token|access[.]?key|credential|shared-key",
    },
}

NOISY_LOGGERS = (
    "org.apache.spark.scheduler.FairSchedulableBuilder",  # warns about every pool without a configuration
    "org.apache.spark.util.SparkStringUtils",  # warns about truncated plan strings
)

DOLLAR = "cdc.dollar"

MAX_INTERPRETED_ROWS = 50_000
"""Batches up to this size run without generated code: in a new JVM, compiling it takes longer than processing the
rows."""


class Application:
    """A Spark application that starts on first use: a small batch may not need it. ``started`` is the session, or the
    error of the start. ``master`` returns the Spark master."""

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
        """Raises the error of the start, and does not start again."""
        with self._starting:
            if self.started is None:
                try:
                    self.started = self._start()
                except Exception as error:
                    self.started = error
            if isinstance(self.started, Exception):
                raise self.started
            return self.started


def target_settings(target_types: Iterable[str]) -> dict[str, str]:
    """The settings of all targets of a job. Their extensions are used together."""
    settings: dict[str, str] = {}
    for kind in dict.fromkeys(target_types):
        own = dict(TARGET_SETTINGS.get(kind, {}))
        extensions = filter(None, (settings.get(EXTENSIONS), own.get(EXTENSIONS)))
        settings |= own
        if joined := ",".join(extensions):
            settings[EXTENSIONS] = joined
    return settings


def build_session(name: str, target_types: Iterable[str], conf: dict[str, str] | None = None) -> SparkSession:
    """The session of this process. ``conf`` adds to the settings; tests set their master there."""
    builder = SparkSession.builder.appName(name)
    for key, value in {**SETTINGS, **target_settings(target_types), **(conf or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel(spark.sparkContext.getConf().get("spark.log.level", "WARN"))
    log4j = spark.sparkContext._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    for name in NOISY_LOGGERS:
        log4j.core.config.Configurator.setLevel(name, log4j.Level.ERROR)
    return spark


def master_of(conf: Mapping[str, str]) -> str:
    """The master in ``conf``, else the one that ``spark-submit`` set. Reading that requires the JVM of
    ``spark-submit``, but no session."""
    return conf.get("spark.master") or str(SparkConf().get("spark.master", "local[*]"))


def local_cores(master: str) -> int:
    """How many cores of this machine Spark has, or would have; 0 where the master is a cluster."""
    match = re.fullmatch(r"local(?:\[(\*|\d+)(?:,\d+)?\])?", master)
    if match is None:
        return 0
    return len(os.sched_getaffinity(0)) if match[1] == "*" else int(match[1] or 1)


def new_session(spark: SparkSession) -> SparkSession:
    """A session with its own settings in the same application: commit tokens are session settings. It reads statements
    alike, whatever the settings of the application are."""
    session = spark.newSession()
    for key, value in {**STATEMENT_SETTINGS, DOLLAR: "$"}.items():
        if session.conf.get(key, None) != value:  # Spark warns about each setting of a deprecated key
            session.conf.set(key, value)
    session.conf.set("spark.sql.shuffle.partitions", str(2 * cores(spark)))
    return session


def setting_text(text: str) -> str:
    """The value of a setting that Spark, or a library with settings like Spark's, reads as ``text``: they replace
    ``${…}`` in values, by the environment for instance."""
    return text.replace("${", f"${{{DOLLAR}}}{{")


def disable_codegen(spark: SparkSession) -> None:
    """Make a session interpret its expressions instead of compiling them."""
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")


def cores(spark: SparkSession) -> int:
    return int(spark.sparkContext.defaultParallelism)
