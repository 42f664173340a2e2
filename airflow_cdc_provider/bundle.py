"""The zip for Spark's ``py_files``: the modules that drivers and executors import, without Airflow."""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from pathlib import Path

from airflow_cdc_provider import __version__
from airflow_cdc_provider.appcds import package_folder
from airflow_cdc_provider.jars import user_cache

PACKAGES = ("core", "connectors", "targets", "staging")
ZIP_TIME = (2026, 1, 1, 0, 0, 0)
"""The same time for all files, so that equal content makes an equal zip."""


def build() -> Path:
    """The zip of the current code, built on first use. Its name contains the hash of its content: a changed checkout
    gets a new file, and a running job keeps its own."""
    files = {str(path.relative_to(root)): path.read_bytes() for root, path in _sources()}
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    bundle = user_cache() / "bundles" / f"cdc-{__version__}-{digest.hexdigest()[:16]}.zip"
    if not bundle.exists():
        bundle.parent.mkdir(parents=True, exist_ok=True)
        _write(bundle, files)
    return bundle


def _sources() -> list[tuple[Path, Path]]:
    package = Path(__file__).parent
    jobs = package_folder("spark_jobs")
    sources = [(package.parent, package / "__init__.py")]
    sources += [(package.parent, path) for name in PACKAGES for path in (package / name).rglob("*.py")]
    return sources + [(jobs.parent, path) for path in jobs.rglob("*.py")]


def _write(bundle: Path, files: dict[str, bytes]) -> None:
    """Write to a temporary file and rename it: another task may be building the same zip."""
    descriptor, temporary = tempfile.mkstemp(dir=bundle.parent, prefix=".bundle-")
    with os.fdopen(descriptor, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, ZIP_TIME), content)
    os.chmod(temporary, 0o644)
    os.replace(temporary, bundle)
