"""What shows on executors of other hosts only: a folder they do not share, a package they lack."""

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

from airflow_cdc_provider.core.errors import CheckFailed, NotInstalled, Problem
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.storage.locations import FOLDER, parse_location

NO_MODULE = re.compile(r"No module named '([\w.]+)'")


def require_shared(context: SparkContext, definition: Definition, known: str) -> None:
    """Raises CheckFailed (ENV005) where an executor does not see ``known``, a file of this job in staging, or the
    folder of the target. Costs one small Spark job on a cluster, nothing where driver and executors are one process.

    Without it the first copy would name data files that only another host has.
    """
    master = context.getConf().get("spark.master", "")
    if master.startswith("local"):
        return
    paths = [known] if parse_location(definition.staging.location).scheme == FOLDER else []
    target = parse_location(definition.target.location)
    if definition.target.location and target.scheme == FOLDER:
        Path(target.path).mkdir(parents=True, exist_ok=True)
        paths.append(target.path)
    if not paths:
        return
    tasks = 2 * context.defaultParallelism
    with missing_packages_are_named(definition.source.type):
        told = context.parallelize(range(tasks), tasks).map(partial(not_seen_here, paths)).collect()
    blind = sorted({f"{path} on {host}" for host, missing in told for path in missing})
    if blind:
        raise CheckFailed(
            Problem(
                "ENV005",
                "Spark's executors do not see the folders of this worker",
                where=f"Spark at {master}",
                found="missing: " + ", ".join(blind),
                allowed="staging and target on storage that every worker and executor mounts at the same path",
                do="mount them there, or use an object store",
                data="nothing was read or written",
            )
        )


def not_seen_here(paths: Sequence[str], task: int) -> tuple[str, list[str]]:
    """Runs in an executor: its host, and the paths that do not exist there."""
    return socket.gethostname(), [path for path in paths if not Path(path).exists()]


@contextlib.contextmanager
def missing_packages_are_named(source_type: str) -> Iterator[None]:
    """Raise NotInstalled (ENV014) in place of the Python trace that an executor without a package answers with."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        found = NO_MODULE.search(str(error))
        if found is None:
            raise
        raise NotInstalled(
            Problem(
                "ENV014",
                "a Python package is missing where Spark's executors run",
                found=found[1],
                do=f"pip install 'airflow-cdc-provider[{source_type}]' on every host of the cluster, into the Python"
                " that PYSPARK_PYTHON names there",
                data="nothing was sealed or written",
            )
        ) from None
