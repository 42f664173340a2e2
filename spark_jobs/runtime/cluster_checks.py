"""Problems that appear only on executors of other hosts: folders that are not shared, packages that are not
installed.
"""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from airflow_cdc_provider.core.errors import CheckFailed, NotInstalled
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.storage.locations import FOLDER, parse_location

NO_MODULE = re.compile(r"No module named '([\w.]+)'")


def require_shared_folders(context: SparkContext, definition: Definition, known_file: str) -> None:
    """Raises CheckFailed (ENV005) where an executor cannot access ``known_file``, a file of this job in staging, or the
    folder of a target. Runs one small Spark job on a cluster, and none where driver and executors are one process.

    Without this check, the first copy would name data files that exist on another host only."""
    master = context.getConf().get("spark.master", "")
    if master.startswith("local"):
        return
    paths = [known_file] if parse_location(definition.staging.location).scheme == FOLDER else []
    for target in (parse_location(one.location) for one in definition.all_targets if one.location):
        if target.scheme == FOLDER:
            Path(target.path).mkdir(parents=True, exist_ok=True)
            paths.append(target.path)
    if not paths:
        return
    tasks = 2 * context.defaultParallelism
    with name_missing_packages(definition.source.type):
        reports = context.parallelize(range(tasks), tasks).map(partial(missing_paths, paths)).collect()
    missing_folders = sorted({f"{path} on {host}" for host, missing in reports for path in missing})
    if missing_folders:
        raise CheckFailed.of(
            "ENV005",
            "Spark's executors cannot access the folders of this worker",
            where=f"Spark at {master}",
            found="missing: " + ", ".join(missing_folders),
            allowed="staging and target on storage that every worker and executor mounts at the same path",
            do="mount them there, or use an object store",
            data="nothing was read or written",
        )


def missing_paths(paths: Sequence[str], task: int) -> tuple[str, list[str]]:
    """Runs in an executor: its host, and the paths that do not exist there."""
    return socket.gethostname(), [path for path in paths if not Path(path).exists()]


@contextlib.contextmanager
def name_missing_packages(source_type: str) -> Iterator[None]:
    """Raise NotInstalled (ENV014) in place of the Python trace of an executor that lacks a package."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        match = NO_MODULE.search(str(error))
        if match is None:
            raise
        raise NotInstalled.of(
            "ENV014",
            "a Python package is not installed on Spark's executors",
            found=match[1],
            do=f"pip install 'airflow-cdc-provider[{source_type}]' on every host of the cluster, in the Python"
            " installation that PYSPARK_PYTHON names there",
            data="nothing was sealed or written",
        ) from None
