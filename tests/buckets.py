"""An S3 store for tests on loopback: moto, which stores objects and supports conditional writes."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.error
import urllib.request
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import TracebackType

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.sandbox.ports import free_ports

START_LIMIT_S = 300
KEY, SECRET = "AKIDTESTS", "tests-secret-key"


class ObjectStore:
    """Runs during a ``with`` block; ``LAKE`` is its first bucket."""

    LAKE = "lake"

    def __init__(self, log: Path) -> None:
        self.log = log
        self.endpoint = f"http://127.0.0.1:{free_ports(1)[0]}"

    def __enter__(self) -> ObjectStore:
        host, _, port = self.endpoint.removeprefix("http://").partition(":")
        with self.log.open("wb") as output:
            command = [sys.executable, "-m", "moto.server", "-H", host, "-p", port]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        deadline = time.monotonic() + START_LIMIT_S
        while not self._is_up():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__(None, None, None)
                raise RuntimeError(f"moto did not start:\n{self.log.read_text()[-2000:]}")
            time.sleep(0.1)
        self.make_bucket(self.LAKE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def connection(self) -> ConnectionInfo:
        """As an Airflow connection of type ``aws`` provides it."""
        return ConnectionInfo("objects", login=KEY, password=SECRET, extra={"endpoint_url": self.endpoint})

    def make_bucket(self, name: str) -> None:
        self._request("PUT", name)

    def keys(self, prefix: str = "", bucket: str = LAKE) -> list[str]:
        """Every key as it is stored, also keys that name no file."""
        tree = ElementTree.fromstring(self._request("GET", f"{bucket}?list-type=2&prefix={prefix}"))
        return [key.text or "" for key in tree.iter() if key.tag.endswith("}Key")]

    def _is_up(self) -> bool:
        try:
            self._request("GET", "")
        except (urllib.error.URLError, ConnectionError):
            return False
        return True

    def _request(self, method: str, path: str) -> bytes:
        with urllib.request.urlopen(urllib.request.Request(f"{self.endpoint}/{path}", method=method)) as answer:
            content: bytes = answer.read()
        return content
