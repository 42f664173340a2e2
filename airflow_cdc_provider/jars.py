"""The jars that Spark jobs need beside Spark's own, exactly those of ``jars.lock.json``, fetched once.

They go on the class path of every job: no job ever resolves a package, and with the cache full nothing touches the
network. ``python -m airflow_cdc_provider.jars`` fills the cache; ``--lock`` takes over the checksums of new versions.
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

from airflow_cdc_provider.core.errors import CdcError, CheckFailed, Problem, Retryable
from airflow_cdc_provider.java import find_java

LOCK = Path(__file__).with_name("jars.lock.json")
FETCH_LIMIT_S = 600
# Spark's own Ivy, one artefact at a time: the lock names every jar, what they ask for besides is in Spark already.
# `--packages` cannot leave the rest out. Runs in a child: this module must not import pyspark.
RESOLVE = """
import sys
from pyspark.java_gateway import launch_gateway
gateway = launch_gateway()
for coordinates in sys.argv[1:]:
    place = gateway.jvm.java.net.URI(f"ivy://{coordinates}?transitive=false")
    gateway.jvm.org.apache.spark.util.DependencyUtils.resolveMavenDependencies(place)
gateway.shutdown()
"""


@dataclass(frozen=True)
class Jar:
    """``coordinates`` are ``group:artifact:version``; ``sha256`` is of the file's bytes, in hex."""

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
    chosen = os.environ.get("AIRFLOW_CDC_JARS")
    return Path(chosen) if chosen else user_cache() / "jars"


def user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "airflow-cdc-provider"


def ensure(groups: Iterable[str] | None = None, lock: Path = LOCK) -> list[Path]:
    """The jars of these groups of the lock (default: all) in the cache, each with the checksum of the lock.

    Raises ``CheckFailed`` (ENV002) for a file with another checksum, ``Retryable`` (ENV003) if one cannot be fetched.
    """
    known = read_lock(lock)
    wanted = list(dict.fromkeys(jar for group in (known if groups is None else groups) for jar in known[group]))
    folder = cache_folder()
    missing = [jar for jar in wanted if not (folder / jar.file).is_file()]
    if missing:
        with tempfile.TemporaryDirectory(prefix="cdc-jars-") as scratch:
            for jar, fetched in zip(missing, fetch(missing, Path(scratch)), strict=True):
                check(jar, fetched)
                keep(fetched, folder / jar.file)
    for jar in wanted:
        check(jar, folder / jar.file)
    return [folder / jar.file for jar in wanted]


def fetch(jars: Sequence[Jar], scratch: Path) -> list[Path]:
    """Lets Ivy bring the jars into ``scratch``. A mirror is named by ``spark.jars.ivySettings``."""
    spark = {
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_SUBMIT_ARGS": f"--conf spark.jars.ivy={scratch} pyspark-shell",
    }
    log = scratch / "ivy.log"
    with log.open("wb") as output, contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(
            [sys.executable, "-c", RESOLVE, *(jar.coordinates for jar in jars)],
            env=os.environ | spark,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            timeout=FETCH_LIMIT_S,
        )
    files = [scratch / "jars" / f"{jar.coordinates.split(':')[0]}_{jar.file}" for jar in jars]
    absent = [jar.coordinates for jar, file in zip(jars, files, strict=True) if not file.is_file()]
    if absent:
        raise Retryable(
            Problem(
                "ENV003",
                f"could not fetch {', '.join(absent)}",
                where=str(cache_folder()),
                found="\n".join(log.read_text(errors="replace").splitlines()[-15:]) or f"nothing in {FETCH_LIMIT_S} s",
                do="see to the network, or copy the jars into that folder by hand; AIRFLOW_CDC_JARS names another",
            )
        )
    return files


def keep(fetched: Path, place: Path) -> None:
    """Whole or not at all, also when two processes fetch at once."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=place.parent, prefix=f".{place.name}.", delete=False) as partial:
        with fetched.open("rb") as content:
            shutil.copyfileobj(content, partial)
        os.fchmod(partial.fileno(), 0o644)
    os.replace(partial.name, place)


def check(jar: Jar, file: Path) -> None:
    found = sha256(file)
    if found != jar.sha256:
        raise CheckFailed(
            Problem(
                "ENV002",
                f"{jar.coordinates} is not the file we know",
                where=str(file),
                found=f"sha256 {found}",
                allowed=f"sha256 {jar.sha256}",
                do="delete it and fetch again; if the same comes back, somebody changed it: do not use it",
            )
        )


def sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def relock(lock: Path = LOCK) -> None:
    """Fetches every coordinate of the lock anew and writes file names and checksums of what came."""
    renewed = {}
    with tempfile.TemporaryDirectory(prefix="cdc-jars-") as scratch:
        for group, jars in read_lock(lock).items():
            named = [replace(jar, file=file_name(jar.coordinates)) for jar in jars]
            files = fetch(named, Path(scratch))
            renewed[group] = [replace(jar, sha256=sha256(file)) for jar, file in zip(named, files, strict=True)]
    write_lock(renewed, lock)


def file_name(coordinates: str) -> str:
    _, artifact, version = coordinates.split(":")
    return f"{artifact}-{version}.jar"


def main(lock: Path = LOCK, module: str = "airflow_cdc_provider.jars") -> None:
    parser = argparse.ArgumentParser(
        f"python -m {module}", description=f"Fetch the jars of {lock} into {cache_folder()}, print their paths."
    )
    parser.add_argument("--lock", action="store_true", help="first rewrite the checksums of the lock")
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
