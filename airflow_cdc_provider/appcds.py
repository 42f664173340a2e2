"""A class-data sharing (AppCDS) archive for the driver's JVM: loading classes takes half of a short job's start-up.

It is built once per Java, Spark and state of the class path, by running ``spark_jobs.warm_up``. Without an archive
(Java cannot create one, or the cache is not writable) jobs only start slower.
``python -m airflow_cdc_provider.appcds delta`` builds the archive for jobs with these jar groups in advance.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from airflow_cdc_provider.jars import user_cache
from airflow_cdc_provider.java import Java, find_java
from airflow_cdc_provider.logstore import class_path

log = logging.getLogger(__name__)

# A job waits for a build that it needs. No job waits for one in advance, which slow machines need half an hour for.
BUILD_LIMIT_S = 300
ADVANCE_LIMIT_S = 1800
# A build that failed on a busy machine may succeed on an idle one.
RETRY_S = 24 * 3600
# An archive takes up to 200 MB.
UNUSED_S = 7 * 24 * 3600
SCRATCH = ".building-"
# The C1 compiler and the serial collector start sooner. With C1 alone, Java's default code cache is 48 MB; many tables
# need more, and compiled code would be discarded.
SHORT_JOB = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=200m", "-XX:+UseSerialGC")
# The C2 compiler pays off, and copies in a small heap take an eighth less time than with Java's default collector.
LONG_JOB = ("-XX:+UseParallelGC",)
NO_CDS_LOG = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
# Spark puts these folders on the class path.
CLASS_PATH_VARIABLES = ("SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR")


def archive(jars: Sequence[Path], limit_s: float = BUILD_LIMIT_S, retry_s: float = RETRY_S) -> Path | None:
    """The archive for a driver with exactly these jars, in this order, on ``spark.driver.extraClassPath``.

    The first call takes as long as one small job. None while another process builds the archive, or if the build
    failed less than ``retry_s`` ago. Raises ``CheckFailed`` (ENV001) without a usable Java.
    """
    java = find_java()
    built = archive_path(java, jars)
    if built.is_file():
        with contextlib.suppress(OSError):
            os.utime(built)
        return built
    try:
        built.parent.mkdir(parents=True, exist_ok=True)
        with built.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not built.is_file() and not failed_within(built, retry_s):
                remove_unusable(built.parent)
                stamps_file(built).write_text("\n".join(map(stamp, on_class_path(jars))))
                build(java, jars, built, limit_s)
    except BlockingIOError:
        log.info("Another process is building the class-data archive; starting without it")
    except OSError as error:
        log.info("No class-data archive, jobs start slower: %s", error)
    return built if built.is_file() else None


def archive_in_advance(jars: Sequence[Path]) -> Path | None:
    """Like ``archive``, with more time for a build, and a new one where the last one failed."""
    return archive(jars, ADVANCE_LIMIT_S, retry_s=0)


def java_options(archive: Path | None, job: Sequence[str] = SHORT_JOB) -> list[str]:
    """For ``spark.driver.extraJavaOptions`` of a SHORT_JOB or a LONG_JOB. A JVM that rejects the archive runs without
    it."""
    if archive is None:
        return list(job)
    return [*job, f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", *NO_CDS_LOG]


def archive_path(java: Java, jars: Sequence[Path]) -> Path:
    return user_cache() / "appcds" / f"{archive_key(java, jars)}.jsa"


def archive_key(java: Java, jars: Sequence[Path]) -> str:
    folders = [os.environ.get(name, "") for name in CLASS_PATH_VARIABLES]
    inputs = [str(java.home), java.version, version("pyspark"), *SHORT_JOB, *folders, *map(stamp, on_class_path(jars))]
    return hashlib.sha256("\0".join(inputs).encode()).hexdigest()[:16]


def on_class_path(jars: Sequence[Path]) -> list[Path]:
    return [*sorted(package_folder("pyspark").glob("jars/*.jar")), *jars]


def stamp(jar: Path) -> str:
    """Java accepts an archive only while size and modification time of every jar are unchanged."""
    status = jar.stat()
    return f"{status.st_size} {status.st_mtime_ns} {jar}"


def remove_unusable(folder: Path) -> None:
    """Also what builds left that were killed."""
    for scratch in folder.glob(f"{SCRATCH}*"):
        if scratch.stat().st_mtime < time.time() - UNUSED_S:
            shutil.rmtree(scratch, ignore_errors=True)
    for archive in folder.glob("*.jsa"):
        if archive.stat().st_mtime < time.time() - UNUSED_S or not still_fits(archive):
            archive.unlink(missing_ok=True)
            stamps_file(archive).unlink(missing_ok=True)


def still_fits(built: Path) -> bool:
    try:
        return all(line == stamp(Path(line.split(" ", 2)[2])) for line in stamps_file(built).read_text().splitlines())
    except FileNotFoundError:
        return False


def stamps_file(built: Path) -> Path:
    """The file next to an archive that lists its jars, so that archives of deleted environments are removed."""
    return built.with_suffix(".jars")


def failure_file(built: Path) -> Path:
    """The file with the output of the last build, if it failed, and the error."""
    return built.with_suffix(".failed")


def failed_within(built: Path, seconds: float) -> bool:
    try:
        return failure_file(built).stat().st_mtime > time.time() - seconds
    except FileNotFoundError:
        return False


def build(java: Java, jars: Sequence[Path], built: Path, limit_s: float) -> None:
    log.info("Building a class-data archive for faster starts, once: %s", built)
    with tempfile.TemporaryDirectory(dir=built.parent, prefix=SCRATCH) as scratch:
        partial = Path(scratch) / built.name
        output = Path(scratch) / "output"
        options = [*SHORT_JOB, f"-XX:ArchiveClassesAtExit={partial}"]
        try:
            with output.open("wb") as output_file:
                subprocess.run(
                    warm_up(jars, options, Path(scratch) / "tables"),
                    env=environment(java),
                    cwd=scratch,
                    stdin=subprocess.DEVNULL,
                    stdout=output_file,
                    stderr=output_file,
                    timeout=limit_s,
                    check=True,
                )
            os.replace(partial, built)
            failure_file(built).unlink(missing_ok=True)
        except (subprocess.SubprocessError, FileNotFoundError) as error:
            with output.open("a") as output_file:
                output_file.write(f"{error}\n")
            os.replace(output, failure_file(built))
            log.info("No class-data archive, jobs start slower: %s; see %s", error, failure_file(built))


def warm_up(jars: Sequence[Path], java_options: Sequence[str], tables: Path) -> list[str]:
    spark_submit = package_folder("pyspark") / "bin" / "spark-submit"
    jobs = package_folder("spark_jobs")
    conf = {
        "spark.driver.extraClassPath": ":".join(map(str, jars)),
        "spark.driver.extraJavaOptions": " ".join(java_options),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    settings = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    return [str(spark_submit), "--master", "local[2]", *settings, str(jobs / "warm_up.py"), str(tables)]


def environment(java: Java) -> dict[str, str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    python_path = os.pathsep.join(filter(None, [str(package_folder("spark_jobs").parent), variables.get("PYTHONPATH")]))
    return variables | {"JAVA_HOME": str(java.home), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": python_path}


def package_folder(name: str) -> Path:
    spec = find_spec(name)
    assert spec is not None and spec.origin is not None, f"{name} is installed with this package"
    return Path(spec.origin).parent


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    archive_in_advance(class_path(sys.argv[1:]))
