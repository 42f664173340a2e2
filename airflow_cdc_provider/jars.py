"""The jars that Spark jobs need besides Spark's own: exactly those of ``jars.lock.json``, downloaded once into a cache.

They are on the class path of the jobs, so that no job resolves packages. Once the cache is filled, the network is not
used. ``python -m airflow_cdc_provider.jars`` fills the cache; ``--lock`` updates the checksums in the lock file.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from airflow_cdc_provider.core.errors import CdcError, CheckFailed, Retryable
from airflow_cdc_provider.java import find_java

LOCK = Path(__file__).with_name("jars.lock.json")
FETCH_LIMIT_S = 600
# Spark's Ivy, one artifact at a time, without transitive dependencies: the lock names every jar, and Spark includes the
# rest. `--packages` cannot exclude them, and has no classifiers. Prints one line per file. Runs in a child process,
# because this module must not import pyspark.
RESOLVE = """
import sys
from pyspark.java_gateway import launch_gateway
gateway = launch_gateway()
java, scala, apache = gateway.jvm.java, gateway.jvm.scala, gateway.jvm.org.apache
ivy, descriptor = apache.ivy.core, apache.ivy.core.module.descriptor
revision = ivy.module.id.ModuleRevisionId.newInstance
conf, optional = apache.spark.SparkConf(), scala.Option.apply
spark, errors = apache.spark.util.MavenUtils, java.lang.System.err
repositories, folder = optional(conf.get("spark.jars.repositories", None)), optional(sys.argv[1])
if conf.contains("spark.jars.ivySettings"):
    settings = spark.loadIvySettings(conf.get("spark.jars.ivySettings"), repositories, folder, errors)
else:
    settings = spark.buildIvySettings(repositories, folder, True, errors)
for coordinates in sys.argv[2:]:
    group, artifact, version, *classifier = coordinates.split(":")
    module = descriptor.DefaultModuleDescriptor.newDefaultInstance(revision("cdc", "jars", "1"))
    dependency = descriptor.DefaultDependencyDescriptor(module, revision(group, artifact, version), False, False, False)
    dependency.addDependencyConfiguration("default", "default")
    extra = java.util.HashMap()
    if classifier:
        extra.put("m:classifier", classifier[0])
    wanted = descriptor.DefaultDependencyArtifactDescriptor(dependency, artifact, "jar", "jar", None, extra)
    dependency.addDependencyArtifact("default", wanted)
    module.addDependency(dependency)
    request = ivy.resolve.ResolveOptions().setTransitive(False)
    for report in apache.ivy.Ivy.newInstance(settings).resolve(module, request).getAllArtifactsReports():
        if report.getLocalFile() is not None:
            print(coordinates, report.getLocalFile().getPath(), sep="\\t", flush=True)
gateway.shutdown()
"""


@dataclass(frozen=True)
class Jar:
    """``coordinates`` are ``group:artifact:version``, or ``group:artifact:version:classifier``; ``sha256`` is the
    checksum of the file in hex."""

    coordinates: str
    file: str
    sha256: str


def read_lock(lock: Path = LOCK) -> dict[str, list[Jar]]:
    groups = json.loads(lock.read_text(encoding="utf-8"))["groups"]
    return {name: [Jar(**jar) for jar in jars] for name, jars in groups.items()}


def write_lock(groups: dict[str, list[Jar]], lock: Path = LOCK) -> None:
    plain = {"format": 1, "groups": {name: [asdict(jar) for jar in jars] for name, jars in groups.items()}}
    lock.write_text(json.dumps(plain, indent=2) + "\n", encoding="utf-8")


def cache_folder() -> Path:
    folder = os.environ.get("AIRFLOW_CDC_JARS")
    return Path(folder) if folder else user_cache() / "jars"


def user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "airflow-cdc-provider"


def ensure(groups: Iterable[str] | None = None, lock: Path = LOCK) -> list[Path]:
    """Paths in the cache of the jars of these groups (default: all). Downloads missing jars and verifies checksums.

    Raises ``CheckFailed`` (ENV002) if a checksum differs, ``Retryable`` (ENV003) if a download fails.
    """
    locked = read_lock(lock)
    required = list(dict.fromkeys(jar for group in (locked if groups is None else groups) for jar in locked[group]))
    folder = cache_folder()
    missing = [jar for jar in required if not (folder / jar.file).is_file()]
    if missing:
        with tempfile.TemporaryDirectory(prefix="cdc-jars-") as scratch:
            for jar, downloaded in zip(missing, fetch(missing, Path(scratch)), strict=True):
                verify_checksum(jar, downloaded)
                install(downloaded, folder / jar.file)
    for jar in required:
        verify_checksum(jar, folder / jar.file)
    return [folder / jar.file for jar in required]


def fetch(jars: Sequence[Jar], scratch: Path) -> list[Path]:
    """Download the jars into ``scratch`` with Ivy. A mirror can be set by ``spark.jars.ivySettings``."""
    spark = {"JAVA_HOME": str(find_java().home), "PYSPARK_SUBMIT_ARGS": "pyspark-shell"}
    log, found = scratch / "ivy.log", scratch / "found.tsv"
    with log.open("wb") as output, found.open("wb") as files, contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(
            [sys.executable, "-c", RESOLVE, str(scratch), *(jar.coordinates for jar in jars)],
            env=os.environ | spark,
            stdin=subprocess.DEVNULL,
            stdout=files,
            stderr=output,
            timeout=FETCH_LIMIT_S,
        )
    lines = [line.partition("\t") for line in found.read_text().splitlines()]  # Ivy's own lines are indented
    fetched = {coordinates: Path(file) for coordinates, _, file in lines if coordinates}
    not_fetched = [jar.coordinates for jar in jars if jar.coordinates not in fetched]
    if not_fetched:
        raise Retryable.of(
            "ENV003",
            f"could not download {', '.join(not_fetched)}",
            where=str(cache_folder()),
            found="\n".join((found.read_text() + log.read_text(errors="replace")).splitlines()[-15:])
            or f"nothing in {FETCH_LIMIT_S} s",
            do="check the network, or copy the jars into this folder (AIRFLOW_CDC_JARS sets another one)",
        )
    return [fetched[jar.coordinates] for jar in jars]


def install(downloaded: Path, destination: Path) -> None:
    """Copy the file atomically: another process may download the same jar."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=destination.parent, prefix=f".{destination.name}.", delete=False) as partial:
        with downloaded.open("rb") as content:
            shutil.copyfileobj(content, partial)
        os.fchmod(partial.fileno(), 0o644)
    os.replace(partial.name, destination)


def verify_checksum(jar: Jar, file: Path) -> None:
    actual = sha256(file)
    if actual != jar.sha256:
        raise CheckFailed.of(
            "ENV002",
            f"{jar.coordinates} has the wrong checksum",
            where=str(file),
            found=f"sha256 {actual}",
            allowed=f"sha256 {jar.sha256}",
            do="delete the file and download it again; if the checksum is the same, do not use the file",
        )


def sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def relock(lock: Path = LOCK) -> None:
    """Download every jar of the lock again, and write the file names and checksums to the lock."""
    new_groups = {}
    with tempfile.TemporaryDirectory(prefix="cdc-jars-") as scratch:
        for group, jars in read_lock(lock).items():
            renamed = [replace(jar, file=file_name(jar.coordinates)) for jar in jars]
            files = fetch(renamed, Path(scratch))
            new_groups[group] = [replace(jar, sha256=sha256(file)) for jar, file in zip(renamed, files, strict=True)]
    write_lock(new_groups, lock)


def file_name(coordinates: str) -> str:
    _, *parts = coordinates.split(":")
    return f"{'-'.join(parts)}.jar"


def main(lock: Path = LOCK, module: str = "airflow_cdc_provider.jars") -> None:
    parser = argparse.ArgumentParser(
        f"python -m {module}", description=f"Download the jars of {lock} into {cache_folder()} and print their paths."
    )
    parser.add_argument("--lock", action="store_true", help="update the checksums in the lock first")
    arguments = parser.parse_args()
    try:
        if arguments.lock:
            relock(lock)
        for jar in ensure(lock=lock):
            print(jar)
    except CdcError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
