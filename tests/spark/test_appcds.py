"""The archives of a Delta target, which ``make`` built ahead, and of a database, as real drivers use them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from airflow_cdc_provider import appcds
from airflow_cdc_provider.java import find_java
from airflow_cdc_provider.logstore import class_path

pytestmark = pytest.mark.jvm


@pytest.mark.parametrize(
    ("groups", "job"),
    [
        (["delta"], appcds.SHORT_JOB),
        (["delta"], appcds.LONG_JOB),
        # It makes an archive first.
        pytest.param(["postgres"], appcds.SHORT_JOB, marks=pytest.mark.nightly),
    ],
    ids=["short", "long", "no lake"],
)
def test_a_driver_takes_most_of_its_classes_from_the_archive(
    groups: list[str], job: Sequence[str], tmp_path: Path
) -> None:
    jars = class_path(groups)
    archive = appcds.archive_in_advance(jars)
    assert archive is not None, failures(jars)
    loaded = tmp_path / "classes.log"
    options = [*appcds.java_options(archive, job), f"-Xlog:class+load:file={loaded}"]
    (tmp_path / "job.py").touch()
    command = [str(appcds.package_folder("pyspark") / "bin" / "spark-submit"), "--master", "local[1]"]
    command += ["--driver-class-path", ":".join(map(str, jars)), "--driver-java-options", " ".join(options)]
    environment = os.environ | {"JAVA_HOME": str(find_java().home), "PYSPARK_PYTHON": sys.executable}
    subprocess.run([*command, str(tmp_path / "job.py")], env=environment, check=True, capture_output=True)
    sources = [line.partition("source: ")[2] for line in loaded.read_text().splitlines()]
    shared = [source for source in sources if source == "shared objects file (top)"]
    from_jars = [source for source in sources if source.startswith(("file:", "jar:"))]
    assert len(shared) > 1000
    assert len(from_jars) < 0.05 * len(shared)


def failures(jars: Sequence[Path]) -> str:
    file = appcds.failure_file(appcds.archive_path(find_java(), jars))
    return f"{file}: {file.read_text(errors='replace')[-3000:] if file.exists() else 'no such file'}"
