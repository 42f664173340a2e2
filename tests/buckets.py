"""Object stores for tests on loopback, one of each kind, with conditional writes: moto, Azurite, and our stand-in for
Google Cloud Storage."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
import xml.etree.ElementTree as ElementTree
from abc import ABC, abstractmethod
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import ClassVar

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import NotInstalled
from airflow_cdc_provider.core.storage.locations import ABFSS, GS, S3
from airflow_cdc_provider.sandbox.azurite import EmbeddedAzurite
from airflow_cdc_provider.sandbox.cloud_storage import EmbeddedCloudStorage
from airflow_cdc_provider.sandbox.ports import free_ports

START_LIMIT_S = 300
KEY, SECRET = "AKIDTESTS", "tests-secret-key"
DEAD = "http://127.0.0.1:9"
KINDS = (S3, GS, ABFSS)
S3_ELSE_NIGHTLY = (S3, *(pytest.param(kind, marks=pytest.mark.nightly) for kind in (GS, ABFSS)))
"""For slow tests. The quick ones of storage and log stores are in every run, on all kinds."""

BY_SAS = f"{ABFSS} by a SAS"
"""The store of this kind, reached by a shared access signature in place of the account's key."""


class ObjectStore(ABC):
    """A running server with the bucket ``LAKE``."""

    LAKE = "lake"
    kind: ClassVar[str]
    connection: ConnectionInfo
    secret: str
    """The part of the connection that no text may contain."""

    def url(self, path: str, bucket: str = LAKE) -> str:
        return f"{self.kind}://{bucket}/{path}"

    @abstractmethod
    def keys(self, prefix: str = "") -> list[str]:
        """Every key in the bucket as it is stored, also keys that name no file."""

    def put(self, key: str, content: bytes) -> None:
        """Under this very key, which may mark a folder."""
        raise NotImplementedError

    @abstractmethod
    def at(self, address: str) -> ConnectionInfo:
        """The connection, with another address (``http://host:port``) of the server."""

    def without_signed_headers(self, address: str) -> ConnectionInfo:
        """As ``at``, with credentials that do not sign the headers of a request, if the server verifies them."""
        return self.at(address)

    @property
    @abstractmethod
    def address(self) -> str:
        """``http://host:port``."""


class Moto(ObjectStore):
    """S3. Runs during a ``with`` block."""

    kind = S3
    secret = SECRET

    def __init__(self, log: Path) -> None:
        self.log = log
        self._address = f"http://127.0.0.1:{free_ports(1)[0]}"
        extra = {"endpoint_url": self._address}
        self.connection = ConnectionInfo("objects", login=KEY, password=SECRET, extra=extra)

    def __enter__(self) -> Moto:
        host, _, port = self.address.removeprefix("http://").partition(":")
        with self.log.open("wb") as output:
            command = [sys.executable, "-m", "tests.s3_server", "-H", host, "-p", port]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        deadline = time.monotonic() + START_LIMIT_S
        while not self._is_up():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__(None, None, None)
                raise RuntimeError(f"moto did not start:\n{self.log.read_text()[-2000:]}")
            time.sleep(0.1)
        self._request("PUT", self.LAKE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def address(self) -> str:
        return self._address

    def at(self, address: str) -> ConnectionInfo:
        return replace(self.connection, extra={"endpoint_url": address})

    def keys(self, prefix: str = "") -> list[str]:
        tree = ElementTree.fromstring(self._request("GET", f"{self.LAKE}?list-type=2&prefix={prefix}"))
        return [key.text or "" for key in tree.iter() if key.tag.endswith("}Key")]

    def put(self, key: str, content: bytes) -> None:
        self._request("PUT", f"{self.LAKE}/{key}", content)

    def _is_up(self) -> bool:
        try:
            self._request("GET", "")
        except (urllib.error.URLError, ConnectionError):
            return False
        return True

    def _request(self, method: str, path: str, content: bytes | None = None) -> bytes:
        with urllib.request.urlopen(urllib.request.Request(f"{self.address}/{path}", content, method=method)) as answer:
            content: bytes = answer.read()
        return content


class CloudStorage(ObjectStore):
    """Every request must belong to one service account."""

    kind = GS

    def __init__(self, server: EmbeddedCloudStorage) -> None:
        self.connection = server.connection
        self.secret = server.key["private_key"].splitlines()[1]
        self._server = server

    @property
    def address(self) -> str:
        return self._server.endpoint

    def at(self, address: str) -> ConnectionInfo:
        return replace(self.connection, extra={**self.connection.extra, "endpoint_url": address})

    def keys(self, prefix: str = "") -> list[str]:
        return self._server.names(self.LAKE, prefix)

    def put(self, key: str, content: bytes) -> None:
        name = urllib.parse.quote(key, safe="")
        address = f"{self.address}/upload/storage/v1/b/{self.LAKE}/o?uploadType=media&name={name}"
        headers = {"Authorization": f"Bearer {self.token()}"}
        urllib.request.urlopen(urllib.request.Request(address, content, headers, method="POST")).close()

    def token(self) -> str:
        """Of the service account."""
        return self._server.token()


class Azure(ObjectStore):
    """An account without hierarchical namespace."""

    kind = ABFSS

    def __init__(self, server: EmbeddedAzurite) -> None:
        self.connection = server.connection
        self.secret = server.key
        self._server = server

    def url(self, path: str, bucket: str = ObjectStore.LAKE) -> str:
        return f"abfss://{bucket}@{self._server.account}.dfs.core.windows.net/{path}"

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.port}"

    def at(self, address: str) -> ConnectionInfo:
        return replace(self.connection, host=f"{address}/{self._server.account}")

    def without_signed_headers(self, address: str) -> ConnectionInfo:
        return replace(self.at(address), password="", extra={"sas_token": self.sas_token()})

    def sas_token(self) -> str:
        return self._server.sas_token(self.LAKE)

    def keys(self, prefix: str = "") -> list[str]:
        return self._server.names(self.LAKE, prefix)


class RunningStores:
    """Servers that start when they are asked for, and end with a ``with`` block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, ObjectStore] = {}
        self._stack = ExitStack()

    def __enter__(self) -> RunningStores:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __getitem__(self, kind: str) -> ObjectStore:
        """Without Node, Azurite is skipped on a laptop and fails in CI."""
        if kind not in self._running:
            self._running[kind] = self._started(kind)
        return self._running[kind]

    def _started(self, kind: str) -> ObjectStore:
        if kind == S3:
            return self._stack.enter_context(Moto(self._folder / "moto.log"))
        if kind == GS:
            account = rsa.generate_private_key(65537, 2048)
            return CloudStorage(self._stack.enter_context(EmbeddedCloudStorage(ObjectStore.LAKE, account=account)))
        try:
            azurite = EmbeddedAzurite(ObjectStore.LAKE)
        except NotInstalled as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(str(error))
        return Azure(self._stack.enter_context(azurite))


def new_location(kind: str, stores: RunningStores, folder: Path) -> tuple[str, ConnectionInfo]:
    """A new folder, on this host or in a bucket. ``kind``: ``folder``, a kind of store, or BY_SAS."""
    if kind == "folder":
        return str(folder / "staging"), ConnectionInfo()
    objects = stores[kind.split()[0]]
    connection = objects.without_signed_headers(objects.address) if kind == BY_SAS else objects.connection
    return objects.url(f"cdc/{uuid.uuid4().hex}"), connection
