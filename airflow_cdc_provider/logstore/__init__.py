"""Jars with classes for Delta and Hadoop, one each, compiled on first use with the compiler that Spark includes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.jars import ensure, user_cache
from airflow_cdc_provider.java import find_java

CLASSES = {
    "HardLinkLogStore": ("delta",),
    "ConditionalLogStore": ("delta", "s3"),
    "ServiceAccountTokens": ("gs",),
}
"""Class → the jar groups that it is compiled against. It is on the class path of every job that uses these groups."""

COMPILE_LIMIT_S = 120
# Runs in a child process, because this module must not import pyspark.
COMPILE = """
import sys, zipfile
from pyspark.java_gateway import launch_gateway
source, jar = sys.argv[1:]
gateway = launch_gateway()
compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
with open(source, encoding="utf-8") as text:
    compiler.cook(text.read())
with zipfile.ZipFile(jar, "w") as archive:
    for name, code in compiler.getBytecodes().items():
        archive.writestr(zipfile.ZipInfo(name.replace(".", "/") + ".class"), bytes(code))
gateway.shutdown()
"""


def class_path(groups: Sequence[str]) -> list[Path]:
    """The class path of jobs with these jar groups. Raises CheckFailed (ENV015), and what ``jars.ensure`` raises."""
    return [*ensure(groups), *classes(groups)]


def classes(groups: Collection[str]) -> list[Path]:
    """Log stores, which make concurrent Delta commits safe, and what file systems lack, for jobs with these groups."""
    return [
        build(source_of(name), ensure(required)) for name, required in CLASSES.items() if set(required) <= set(groups)
    ]


def source_of(name: str) -> Path:
    return Path(__file__).with_name(f"{name}.java")


def build(source: Path, jars: Sequence[Path]) -> Path:
    """Compile ``source`` against ``jars`` into a jar in the cache. Raises CheckFailed (ENV015) if that fails."""
    inputs = [source.read_text(encoding="utf-8"), *(jar.name for jar in jars)]
    digest = hashlib.sha256("\0".join(inputs).encode()).hexdigest()
    built = user_cache() / "logstore" / f"cdc-logstore-{digest[:16]}.jar"
    if not built.exists():
        built.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=built.parent, prefix=".building-") as scratch:
            partial = Path(scratch) / built.name
            _compile(source, jars, partial, Path(scratch) / "output")
            os.replace(partial, built)
    return built


def _compile(source: Path, jars: Sequence[Path], jar: Path, output: Path) -> None:
    spark = {
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_SUBMIT_ARGS": f"--driver-class-path {os.pathsep.join(map(str, jars))} pyspark-shell",
    }
    try:
        with output.open("wb") as output_file:
            subprocess.run(
                [sys.executable, "-c", COMPILE, str(source), str(jar)],
                env=os.environ | spark,
                stdin=subprocess.DEVNULL,
                stdout=output_file,
                stderr=output_file,
                timeout=COMPILE_LIMIT_S,
                check=True,
            )
    except subprocess.SubprocessError as error:
        raise CheckFailed.of(
            "ENV015",
            "a Java class of the provider could not be compiled",
            where=str(source),
            found="\n".join(output.read_text(errors="replace").splitlines()[-15:]) or str(error),
            allowed="Spark 4.1 with its own Janino, and the jars of jars.lock.json",
            do="install the pyspark version of constraints.txt; without the log stores, concurrent drivers could "
            "overwrite each other's commits",
        ) from error
