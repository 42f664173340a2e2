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
METADATA = "Metadata-Version: 2.1\nName: simulated\nVersion: 1.0\n"
POINTS = """[airflow_cdc_provider.sources]
{kind} = {name}
[airflow_cdc_provider.sources.options]
{kind} = airflow_cdc_provider.connectors.sources.sqlserver.options:SqlServerOptions
"""


@contextmanager
def installed_simulator(folder: Path, spark: SparkSession) -> Iterator[None]:
    """In this process, in those that it starts, and in Spark's workers. The package has no times in it: Spark refuses a
    file of the same name with other bytes."""
    path = folder / f"{KIND}.zip"
    with zipfile.ZipFile(path, "w") as package:
        for name, text in (("METADATA", METADATA), ("entry_points.txt", POINTS.format(kind=KIND, name=NAME))):
            package.writestr(zipfile.ZipInfo(f"simulated-1.0.dist-info/{name}"), text)
    spark.sparkContext.addPyFile(str(path))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(path))
        others = os.environ.get("PYTHONPATH", "")
        patch.setenv("PYTHONPATH", os.pathsep.join([str(path), str(Path.cwd()), others]))
        importlib.invalidate_caches()
        yield
