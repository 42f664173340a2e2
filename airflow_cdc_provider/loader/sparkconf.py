"""Which Spark settings a definition may carry.

An allow-list: a setting can load code, open ports, write files or undo what exactness rests on (commit tokens, time
zone, class path). What is not listed is refused with the reason where there is a particular one.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

ALLOWED = (
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
    "spark.hadoop.*",
    "spark.io.*",
    "spark.kubernetes.driver.limit.cores",
    "spark.kubernetes.driver.request.cores",
    "spark.kubernetes.executor.limit.cores",
    "spark.kubernetes.executor.request.cores",
    "spark.kubernetes.namespace",
    "spark.kubernetes.node.selector.*",
    "spark.local.dir",
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
    "spark.ui.*",
    "spark.yarn.queue",
)

REFUSED = {
    "spark.jars*": "jars come from the provider's own list",
    "spark.master": "the Spark connection says where jobs run",
    "spark.submit.*": "the Spark connection says how jobs are submitted",
    "spark.*.extraClassPath": "the class path is the provider's",
    "spark.*.extraJavaOptions": "Java options are the provider's",
    "spark.*.extraLibraryPath": "the library path is the provider's",
    "spark.sql.extensions": "the target sets it",
    "spark.sql.catalog.*": "the target sets it",
    "spark.sql.queryExecutionListeners": "it loads code",
    "spark.sql.streaming.streamingQueryListeners": "it loads code",
    "spark.sql.session.timeZone": "copies are exact in UTC only",
    "spark.sql.ansi.enabled": "copies are exact under the provider's setting only",
    "spark.sql.datetime.java8API.enabled": "copies are exact under the provider's setting only",
    "spark.databricks.delta.write.*": "commit tokens are the provider's",
    "spark.databricks.delta.commitInfo.*": "commit metadata is the provider's",
    "spark.databricks.delta.merge.*": "merges are the provider's",
    "spark.sql.iceberg.snapshot-property.*": "commit metadata is the provider's",
    "spark.hadoop.hadoop.security.credential.provider.path": "secrets belong into an Airflow connection",
}

SIZES = re.compile(
    r"spark\.(driver|executor)\.(memory|memoryOverhead|maxResultSize|pyspark\.memory)|spark\.memory\.offHeap\.size"
)
SIZE = re.compile(r"[1-9][0-9]{0,8}[kmgt]b?", re.IGNORECASE)


def refused(key: str) -> str:
    """Why a setting may not be set; empty where it may."""
    for pattern, reason in REFUSED.items():
        if fnmatchcase(key, pattern):
            return reason
    return "" if any(fnmatchcase(key, pattern) for pattern in ALLOWED) else "it is not on the list"


def lacks_unit(key: str, value: str) -> bool:
    """Whether a memory size is written without the unit that Spark would guess (and guess differently by setting)."""
    return SIZES.fullmatch(key) is not None and SIZE.fullmatch(value) is None
