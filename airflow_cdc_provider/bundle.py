"""The zip that Spark gets as ``py_files``: what drivers and executors import, and nothing of Airflow."""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

from airflow_cdc_provider import __version__
from airflow_cdc_provider.jars import user_cache

ROOMS = ("core", "connectors", "targets", "staging")
EPOCH = (2026, 1, 1, 0, 0, 0)
"""One time for all files: equal content makes an equal zip."""


def build() -> Path:
    """The zip of this version's code, built on first use. Its name carries the hash of its content, so that a changed
    checkout gets a new one and a running job keeps its own."""
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
    jobs = _package_folder("spark_jobs")
    found = [(package.parent, package / "__init__.py")]
    found += [(package.parent, path) for room in ROOMS for path in (package / room).rglob("*.py")]
    return found + [(jobs.parent, path) for path in jobs.rglob("*.py")]


def _package_folder(name: str) -> Path:
    spec = find_spec(name)
    assert spec is not None and spec.origin is not None, f"{name} is part of the wheel"
    return Path(spec.origin).parent


def _write(bundle: Path, files: dict[str, bytes]) -> None:
    """All at once: another task may be building the same zip."""
    descriptor, temporary = tempfile.mkstemp(dir=bundle.parent, prefix=".bundle-")
    with os.fdopen(descriptor, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, EPOCH), content)
    os.chmod(temporary, 0o644)
    os.replace(temporary, bundle)
