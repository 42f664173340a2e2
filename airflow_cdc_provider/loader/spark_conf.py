"""Which Spark settings a definition may carry, and what they may say.

An allow-list: a setting can load code, open ports, write files or undo what exactness rests on (commit tokens, time
zone, class path). Most of what is allowed is a figure: numbers, sizes, times, true and false name no class. Where words
are taken, they are listed or have a form. What is refused is told with the reason where there is a particular one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class ValueFormat:
    """What a value must be: as a pattern, and in words."""

    pattern: str
    words: str


FIGURE = ValueFormat(
    r"true|false|-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?(b|[kmgtp]b?|us|ms|s|min|h|d)?",
    "a number, a size, a time, true or false",
)
CODEC = ValueFormat("lz4|lzf|snappy|zstd", "lz4, lzf, snappy, zstd")
NAME = ValueFormat(r"[a-z0-9][a-z0-9._/@-]*", "a name: letters, digits, `.`, `_`, `-`, `/`, `@`")
FOLDER = ValueFormat(r"(file:/{0,2}|s3a?:/)?/[a-z0-9._/+@=~-]*", "a folder: /path, file:///path, s3a://bucket/path")

FORMS = {
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
    "spark.local.dir": ValueFormat(r"/[a-z0-9._/+@=~-]*(,/[a-z0-9._/+@=~-]*)*", "/folder, several with commas"),
    "spark.shuffle.mapStatus.compression.codec": CODEC,
    "spark.sql.catalogImplementation": ValueFormat("hive|in-memory", "hive, in-memory"),
    "spark.sql.parquet.compression.codec": ValueFormat(
        "none|uncompressed|snappy|gzip|lz4|lz4_raw|zstd", "none, uncompressed, snappy, gzip, lz4, lz4_raw, zstd"
    ),
    "spark.sql.warehouse.dir": FOLDER,
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

REFUSED = {
    "spark.*extraListeners": CODE,
    "spark.hadoop.*.impl": CODE,
    "spark.hadoop.*.class": CODE,
    "spark.hadoop.fs.s3a.*credential*": "an Airflow connection says how a bucket is reached",
    "spark.hadoop.fs.s3a.bucket.*": "an Airflow connection says how a bucket is reached",
    "spark.hadoop.fs.s3a.connection.ssl.*": "an Airflow connection says how a bucket is reached",
    "spark.jars*": "jars come from the provider's own list",
    "spark.master": "the Spark connection says where jobs run",
    "spark.submit.*": "the Spark connection says how jobs are submitted",
    "spark.*.extraClassPath": "the class path is the provider's",
    "spark.*.extraJavaOptions": "Java options are the provider's",
    "spark.*.extraLibraryPath": "the library path is the provider's",
    "spark.sql.extensions": "the target sets it",
    "spark.sql.catalog.*": "the target sets it",
    "spark.plugins*": CODE,
    "spark.serializer": CODE,
    "spark.shuffle.manager": CODE,
    "spark.shuffle.sort.io.plugin.*": CODE,
    "spark.sql.files.ignore*": "a copy must not leave out files in silence",
    "spark.sql.hive.metastore.*": CODE,
    "spark.sql.queryExecutionListeners": CODE,
    "spark.sql.streaming.streamingQueryListeners": CODE,
    "spark.ui.*": "jobs show no page; their progress is in the task's log",
    "spark.sql.session.timeZone": "copies are exact in UTC only",
    "spark.sql.ansi.enabled": "copies are exact under the provider's setting only",
    "spark.sql.datetime.java8API.enabled": "copies are exact under the provider's setting only",
    "spark.databricks.delta.write.*": "commit tokens are the provider's",
    "spark.databricks.delta.commitInfo.*": "commit metadata is the provider's",
    "spark.databricks.delta.merge.*": "merges are the provider's",
    "spark.sql.iceberg.snapshot-property.*": "commit metadata is the provider's",
    "spark.hadoop.hadoop.security.credential.provider.path": "secrets belong into an Airflow connection",
}

KEY = re.compile(r"[\w./-]+")

SIZES = re.compile(
    r"spark\.(driver|executor)\.(memory|memoryOverhead|maxResultSize|pyspark\.memory)|spark\.memory\.offHeap\.size"
)
SIZE = re.compile(r"[1-9][0-9]{0,8}[kmgt]b?", re.IGNORECASE)


def refusal_reason(key: str) -> str:
    """Why a setting may not be set; empty where it may."""
    for pattern, reason in REFUSED.items():
        if fnmatchcase(key, pattern):
            return reason
    return "" if _form(key) else "it is not on the list"


def expected_format(key: str, value: str) -> str:
    """What an allowed setting may say, where it says something else; empty where it does not."""
    form = _form(key)
    return "" if form is None or re.fullmatch(form.pattern, value, re.IGNORECASE) else form.words


def _form(key: str) -> ValueFormat | None:
    if KEY.fullmatch(key) is None:
        return None
    for pattern, form in FORMS.items():
        if fnmatchcase(key, pattern):
            return form
    return FIGURE if any(fnmatchcase(key, pattern) for pattern in FIGURES) else None


def lacks_unit(key: str, value: str) -> bool:
    """Whether a memory size is written without the unit that Spark would guess (and guess differently by setting)."""
    return SIZES.fullmatch(key) is not None and SIZE.fullmatch(value) is None
