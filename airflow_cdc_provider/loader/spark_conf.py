"""The Spark settings that a definition may contain, and their values.

An allow-list, because a setting can load code, open ports, write files or change settings on which exact copies depend
(commit tokens, class path, the meaning of statements). Most allowed values are figures: numbers, sizes, times, true and
false cannot name a class. Other values must be listed or match a format.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from airflow_cdc_provider.core.decisions.spark_application import ADDRESS, HISTORY_SERVER
from airflow_cdc_provider.core.decisions.statement_settings import SETTINGS_LIKE_THESE, STATEMENT_SETTINGS


@dataclass(frozen=True)
class ValueFormat:
    """The format of a value, as a pattern and in words."""

    pattern: str
    words: str


FIGURE = ValueFormat(
    r"true|false|-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?(b|[kmgtp]b?|us|ms|s|min|h|d)?",
    "a number, a size, a time, true or false",
)
CODEC = ValueFormat("lz4|lzf|snappy|zstd", "lz4, lzf, snappy, zstd")
NAME = ValueFormat(r"[a-z0-9][a-z0-9._/@-]*", "a name: letters, digits, `.`, `_`, `-`, `/`, `@`")
FOLDER = ValueFormat(r"(file:/{0,2}|s3a?:/)?/[a-z0-9._/+@=~-]*", "a folder: /path, file:///path, s3a://bucket/path")

FORMATS = {
    "spark.eventLog.compression.codec": CODEC,
    "spark.eventLog.dir": FOLDER,
    "spark.hadoop.hive.metastore.kerberos.principal": NAME,
    "spark.hadoop.hive.metastore.uris": ValueFormat(
        r"thrift://[a-z0-9.-]+:[0-9]+(,thrift://[a-z0-9.-]+:[0-9]+)*", "thrift://host:port, several with commas"
    ),
    "spark.hadoop.javax.jdo.option.ConnectionURL": ValueFormat(
        r"jdbc:derby:;databaseName=/[a-z0-9._/+@=~-]*(;create=true)?", "jdbc:derby:;databaseName=/folder;create=true"
    ),
    "spark.io.compression.codec": CODEC,
    "spark.kubernetes.namespace": NAME,
    "spark.kubernetes.node.selector.*": NAME,
    "spark.log.level": ValueFormat("debug|info|warn|error", "DEBUG, INFO, WARN, ERROR"),
    "spark.local.dir": ValueFormat(r"/[a-z0-9._/+@=~-]*(,/[a-z0-9._/+@=~-]*)*", "/folder, several with commas"),
    "spark.shuffle.mapStatus.compression.codec": CODEC,
    "spark.sql.catalogImplementation": ValueFormat("hive|in-memory", "hive, in-memory"),
    "spark.sql.parquet.compression.codec": ValueFormat(
        "none|uncompressed|snappy|gzip|lz4|lz4_raw|zstd", "none, uncompressed, snappy, gzip, lz4, lz4_raw, zstd"
    ),
    "spark.sql.warehouse.dir": FOLDER,
    HISTORY_SERVER: ValueFormat(ADDRESS.pattern, "host:port, http://host:port, https://host"),
    "spark.yarn.queue": NAME,
}

FIGURES = (
    "spark.cleaner.*",
    "spark.cores.max",
    "spark.databricks.delta.*",
    "spark.default.parallelism",
    "spark.driver.cores",
    "spark.driver.maxResultSize",
    "spark.driver.memory",
    "spark.driver.memoryOverhead",
    "spark.driver.memoryOverheadFactor",
    "spark.dynamicAllocation.*",
    "spark.eventLog.*",
    "spark.executor.cores",
    "spark.executor.heartbeatInterval",
    "spark.executor.instances",
    "spark.executor.memory",
    "spark.executor.memoryOverhead",
    "spark.executor.memoryOverheadFactor",
    "spark.executor.pyspark.memory",
    "spark.hadoop.datanucleus.schema.*",
    "spark.hadoop.fs.s3a.*",
    "spark.hadoop.hive.metastore.*",
    "spark.hadoop.io.file.buffer.size",
    "spark.hadoop.parquet.*",
    "spark.io.*",
    "spark.kubernetes.driver.limit.cores",
    "spark.kubernetes.driver.request.cores",
    "spark.kubernetes.executor.limit.cores",
    "spark.kubernetes.executor.request.cores",
    "spark.locality.*",
    "spark.memory.*",
    "spark.network.timeout",
    "spark.reducer.*",
    "spark.rpc.*",
    "spark.shuffle.*",
    "spark.speculation",
    "spark.speculation.*",
    "spark.sql.*",
    "spark.storage.*",
    "spark.task.*",
)

CODE = "it loads code"
EXACT = "copies are exact only under the provider's setting"
S3_CONNECTION = "an Airflow connection sets the access to a bucket"

REFUSED = {
    "spark.*extraListeners": CODE,
    "spark.hadoop.*.impl": CODE,
    "spark.hadoop.*.class": CODE,
    "spark.hadoop.fs.s3a.*credential*": S3_CONNECTION,
    "spark.hadoop.fs.s3a.bucket.*": S3_CONNECTION,
    "spark.hadoop.fs.s3a.connection.ssl.*": S3_CONNECTION,
    "spark.jars*": "the provider sets the jars",
    "spark.master": "the Spark connection sets it",
    "spark.submit.*": "the Spark connection sets it",
    "spark.*.extraClassPath": "the provider sets it",
    "spark.*.extraJavaOptions": "the provider sets it",
    "spark.*.extraLibraryPath": "the provider sets it",
    "spark.sql.extensions": "the target sets it",
    "spark.sql.catalog.*": "the target sets it",
    "spark.plugins*": CODE,
    "spark.serializer": CODE,
    "spark.shuffle.manager": CODE,
    "spark.shuffle.sort.io.plugin.*": CODE,
    "spark.sql.files.ignore*": "copies must not ignore files",
    "spark.sql.hive.metastore.*": CODE,
    "spark.sql.queryExecutionListeners": CODE,
    "spark.sql.streaming.streamingQueryListeners": CODE,
    "spark.ui.*": "jobs have no web UI; their progress is in the task's log",
    **dict.fromkeys((*STATEMENT_SETTINGS, *SETTINGS_LIKE_THESE), EXACT),
    "spark.sql.datetime.java8API.enabled": EXACT,
    "spark.databricks.delta.write.*": "the provider sets the commit token",
    "spark.databricks.delta.commitInfo.*": "the provider sets the commit metadata",
    "spark.databricks.delta.merge.*": "the provider configures merges",
    "spark.sql.iceberg.snapshot-property.*": "the provider sets the commit metadata",
    "spark.hadoop.hadoop.security.credential.provider.path": "secrets belong in an Airflow connection",
}

KEY = re.compile(r"[\w./-]+")

SIZES = re.compile(
    r"spark\.(driver|executor)\.(memory|memoryOverhead|maxResultSize|pyspark\.memory)|spark\.memory\.offHeap\.size"
)
SIZE = re.compile(r"[1-9][0-9]{0,8}[kmgt]b?", re.IGNORECASE)


def refusal_reason(key: str) -> str:
    """Why a setting is not allowed; empty if it is."""
    for pattern, reason in REFUSED.items():
        if fnmatchcase(key, pattern):
            return reason
    return "" if _format(key) else "it is not in the list of allowed settings"


def expected_format(key: str, value: str) -> str:
    """The format of an allowed setting, in words, if ``value`` violates it; otherwise empty."""
    value_format = _format(key)
    if value_format is None or re.fullmatch(value_format.pattern, value, re.IGNORECASE):
        return ""
    return value_format.words


def _format(key: str) -> ValueFormat | None:
    if KEY.fullmatch(key) is None:
        return None
    for pattern, value_format in FORMATS.items():
        if fnmatchcase(key, pattern):
            return value_format
    return FIGURE if any(fnmatchcase(key, pattern) for pattern in FIGURES) else None


def lacks_unit(key: str, value: str) -> bool:
    """Whether a memory size has no unit. Spark's default unit differs between settings."""
    return SIZES.fullmatch(key) is not None and SIZE.fullmatch(value) is None
