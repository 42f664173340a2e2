"""Finds a Java that runs Spark 4.1: version 17 or 21, with the module that Spark requires.

``python -m airflow_cdc_provider.java`` prints its home folder, for ``JAVA_HOME``.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from airflow_cdc_provider.core.errors import CheckFailed

VERSIONS = (17, 21)
# Spark's launcher adds this module. A trimmed runtime without it exits at once.
MODULE = "jdk.incubator.vector"
SYSTEM_FOLDERS = (Path("/usr/lib/jvm"), Path("/Library/Java/JavaVirtualMachines"))


@dataclass(frozen=True)
class Java:
    home: Path
    version: str
    modules: frozenset[str]

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"

    @property
    def runs_spark(self) -> bool:
        return self.major in VERSIONS and MODULE in self.modules

    @property
    def major(self) -> int:
        """17 of ``17.0.15``; 0 where the version is unreadable."""
        leading = re.match(r"\d+", self.version)
        return int(leading.group()) if leading else 0


def find_java() -> Java:
    """JAVA_HOME, else ``java`` on PATH, else the system's folders. Raises ``CheckFailed`` (ENV001) if none runs Spark.

    An explicit JAVA_HOME that does not run Spark is an error, even if another Java would.
    """
    java_home = os.environ.get("JAVA_HOME")
    homes = [Path(java_home)] if java_home else list(installed_homes())
    rejected = []
    for home in homes:
        java = read_java(home)
        if java and java.runs_spark:
            return java
        rejected.append(f"{home} ({java.version if java else 'no Java'})")
    raise CheckFailed.of(
        "ENV001",
        "no Java found that runs Spark",
        where="JAVA_HOME" if java_home else "PATH and the system's folders",
        found=", ".join(rejected) or "none",
        allowed=f"Java {' or '.join(map(str, VERSIONS))} with the module {MODULE}",
        do="apt-get install openjdk-17-jre-headless, or set JAVA_HOME to such a Java",
    )


def installed_homes() -> Iterator[Path]:
    """Home folders, the one on PATH first."""
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path).resolve().parent.parent
    for folder in SYSTEM_FOLDERS:
        if folder.is_dir():
            for entry in sorted(folder.iterdir()):
                home = entry / "Contents" / "Home" if (entry / "Contents").is_dir() else entry
                if (home / "bin" / "java").is_file():
                    yield home


def read_java(home: Path) -> Java | None:
    """The Java of a home folder, from its ``release`` file; None if there is none. Starts no process."""
    release = home / "release"
    if not (home / "bin" / "java").is_file() or not release.is_file():
        return None
    properties = dict(re.findall(r'^(\w+)="(.*)"$', release.read_text(encoding="utf-8"), re.MULTILINE))
    return Java(home, properties.get("JAVA_VERSION", "unknown"), frozenset(properties.get("MODULES", "").split()))


if __name__ == "__main__":
    try:
        print(find_java().home)
    except CheckFailed as error:
        sys.exit(str(error))
