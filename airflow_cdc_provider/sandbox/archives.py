"""Programs that are published as archives, which the Ivy inside Spark does not download: unpacked once into the user's
cache. Listed in ``archives.lock.json``; ``python -m airflow_cdc_provider.sandbox.archives`` fills the cache."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from airflow_cdc_provider.core.errors import CheckFailed, Retryable
from airflow_cdc_provider.jars import FETCH_LIMIT_S, sha256, user_cache
from airflow_cdc_provider.java import find_java

LOCK = Path(__file__).with_name("archives.lock.json")
IVY = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="sandbox" module="sandbox"/>
  <dependencies>
    <dependency org="{group}" name="{artifact}" rev="{version}" transitive="false">
      <artifact name="{artifact}" type="{extension}" ext="{extension}"{classifier}/>
    </dependency>
  </dependencies>
</ivy-module>
"""


@dataclass(frozen=True)
class Archive:
    """``sha256``: of the file, in hex."""

    group: str
    artifact: str
    version: str
    extension: str
    classifier: str
    sha256: str

    @property
    def folder(self) -> Path:
        return user_cache() / "archives" / f"{self.artifact}-{self.version}-{self.sha256[:16]}"


def archive(name: str) -> Path:
    """The folder with the content of an archive. Raises Retryable (ENV003) if it cannot be downloaded, CheckFailed
    (ENV002) if its checksum differs."""
    wanted = Archive(**json.loads(LOCK.read_text(encoding="utf-8"))[name])
    if not wanted.folder.exists():
        wanted.folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f"{wanted.artifact}-", dir=wanted.folder.parent))
        try:
            _unpack(_fetch(wanted, scratch), scratch / "content")
            _rename(scratch / "content", wanted.folder)
        finally:
            shutil.rmtree(scratch)
    return wanted.folder


def _fetch(wanted: Archive, scratch: Path) -> Path:
    """Ivy's own program is among Spark's jars."""
    classifier = f' m:classifier="{wanted.classifier}"' if wanted.classifier else ""
    module = IVY.format(**{**vars(wanted), "classifier": classifier})
    (scratch / "ivy.xml").write_text(module, encoding="utf-8")
    command = [str(find_java().executable), "-cp", str(_ivy()), "org.apache.ivy.Main"]
    command += ["-ivy", str(scratch / "ivy.xml"), "-cache", str(scratch / "cache")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_LIMIT_S)
    file = next((scratch / "cache").rglob(f"{wanted.artifact}-{wanted.version}*.{wanted.extension}"), None)
    if file is None:
        raise Retryable.of(
            "ENV003",
            f"could not download {wanted.group}:{wanted.artifact}:{wanted.version}",
            where=str(wanted.folder.parent),
            found="\n".join((done.stdout + done.stderr).splitlines()[-15:]),
            do="check the network",
        )
    actual = sha256(file)
    if actual != wanted.sha256:
        raise CheckFailed.of(
            "ENV002",
            f"{wanted.artifact} {wanted.version} has the wrong checksum",
            where=str(LOCK),
            found=f"sha256 {actual}",
            allowed=f"sha256 {wanted.sha256}",
            do="do not use the file",
        )
    return file


def _ivy() -> Path:
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return next(Path(spec.origin).parent.glob("jars/ivy-*.jar"))


def _unpack(file: Path, folder: Path) -> None:
    with tarfile.open(file) as content:
        content.extractall(folder, filter="data")


def _rename(content: Path, folder: Path) -> None:
    """Another process may have been first."""
    try:
        os.rename(content, folder)
    except OSError:
        if not folder.exists():
            raise


if __name__ == "__main__":
    for each in json.loads(LOCK.read_text(encoding="utf-8")):
        print(archive(each))
