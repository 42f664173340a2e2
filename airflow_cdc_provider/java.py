"""Finds a Java that runs Spark 4.1: version 17 or 21, with the modules Spark asks for.

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

from airflow_cdc_provider.core.errors import CheckFailed, Problem

VERSIONS = (17, 21)
# Spark's launcher adds it by name; a runtime trimmed for size lacks it and ends before Spark's first line.
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
    """JAVA_HOME, else ``java`` on PATH, else the system's folders. Raises ``CheckFailed`` (ENV001) if none will do.

    A JAVA_HOME that will not do is an error even if another Java would: somebody chose it.
    """
    chosen = os.environ.get("JAVA_HOME")
    places = [Path(chosen)] if chosen else list(installed())
    found = []
    for home in places:
        java = read(home)
        if java and java.runs_spark:
            return java
        found.append(f"{home} ({java.version if java else 'no Java there'})")
    raise CheckFailed(
        Problem(
            "ENV001",
            "no Java that runs Spark",
            where="JAVA_HOME" if chosen else "PATH and the system's folders",
            found=", ".join(found) or "none",
            allowed=f"Java {' or '.join(map(str, VERSIONS))} with the module {MODULE}",
            do="apt-get install openjdk-17-jre-headless, or set JAVA_HOME to such a Java",
        )
    )


def installed() -> Iterator[Path]:
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


def read(home: Path) -> Java | None:
    """What the ``release`` file of a home folder says; None where there is none. Starts no process."""
    release = home / "release"
    if not (home / "bin" / "java").is_file() or not release.is_file():
        return None
    says = dict(re.findall(r'^(\w+)="(.*)"$', release.read_text(encoding="utf-8"), re.MULTILINE))
    return Java(home, says.get("JAVA_VERSION", "unknown"), frozenset(says.get("MODULES", "").split()))


if __name__ == "__main__":
    try:
        print(find_java().home)
    except CheckFailed as error:
        sys.exit(str(error))
