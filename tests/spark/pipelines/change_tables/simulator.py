"""The simulated SQL Server as a source type that a package provides."""

from __future__ import annotations

import importlib
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.simulators.sqlserver.source import NAME

KIND = "simulated_sqlserver"
POINTS = """[airflow_cdc_provider.sources]
{kind} = {name}
[airflow_cdc_provider.sources.options]
{kind} = airflow_cdc_provider.connectors.sources.sqlserver.options:SqlServerOptions
"""


@contextmanager
def installed_simulator(folder: Path, spark: SparkSession) -> Iterator[None]:
    """In this process, in those that it starts, and in Spark's workers."""
    path = folder / f"{KIND}.zip"
    with zipfile.ZipFile(path, "w") as package:
        info = "simulated-1.0.dist-info"
        package.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: simulated\nVersion: 1.0\n")
        package.writestr(f"{info}/entry_points.txt", POINTS.format(kind=KIND, name=NAME))
    spark.sparkContext.addPyFile(str(path))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(path))
        others = os.environ.get("PYTHONPATH", "")
        patch.setenv("PYTHONPATH", os.pathsep.join([str(path), str(Path.cwd()), others]))
        importlib.invalidate_caches()
        yield
