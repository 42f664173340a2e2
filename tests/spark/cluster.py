"""A Spark standalone cluster on loopback: one master, one worker, ended by their process ids."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

START_LIMIT_S = 600


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """Yields the URL of the master."""
    with _process(folder, "master.Master", "--port", "0") as wait_for:
        url = wait_for(r"Starting Spark master at (spark://\S+)")
        wait_for(r"elected leader")
        work = str(folder / "work")
        with _process(folder, "worker.Worker", "--cores", "2", "--memory", "1g", "--work-dir", work, url) as wait_for:
            wait_for(r"Successfully registered")
            yield url


@contextmanager
def _process(folder: Path, kind: str, *arguments: str) -> Iterator[Callable[[str], str]]:
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    home = Path(spec.origin).parent
    log = folder / f"{kind}.log"
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}"]
    settings = {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--webui-port", "0", *arguments],
            cwd=folder,
            env={**os.environ, **settings},
            stdout=subprocess.DEVNULL,
            stderr=output,
        )

    def wait_for(pattern: str) -> str:
        end = time.monotonic() + START_LIMIT_S
        while time.monotonic() < end and process.poll() is None:
            if found := re.search(pattern, log.read_text()):
                return found[found.lastindex or 0]
            time.sleep(0.1)
        raise AssertionError(f"{kind} did not come up: no {pattern!r} in\n{log.read_text()}")

    try:
        yield wait_for
    finally:
        process.terminate()
        process.wait()
