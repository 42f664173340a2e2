"""A stand-in for Azure's object store on loopback: Azurite, which Microsoft publishes as a package of Node."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import shutil
import subprocess
import tempfile
import urllib.parse
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar
from xml.etree import ElementTree

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import NotInstalled
from airflow_cdc_provider.jars import user_cache
from airflow_cdc_provider.sandbox.ports import free_ports, is_open
from airflow_cdc_provider.sandbox.server import HOST, EmbeddedServer

PACKAGE = "azurite@3.37.0"
API_VERSION = "2021-12-02"


class EmbeddedAzurite(EmbeddedServer):
    """One account, whose containers end with the server. Raises NotInstalled (ENV014) without Node."""

    name = "Azurite"
    account: ClassVar[str] = "cdcstandin"

    def __init__(self, *containers: str) -> None:
        self._program = program()
        super().__init__()
        self.containers = containers
        self.key = base64.b64encode(secrets.token_bytes(32)).decode()
        (self.port,) = free_ports(1)

    @property
    def endpoint(self) -> str:
        return f"http://{HOST}:{self.port}/{self.account}"

    @property
    def connection(self) -> ConnectionInfo:
        """As an Airflow connection of type ``wasb`` provides it."""
        return ConnectionInfo("objects", self.endpoint, login=self.account, password=self.key)

    def sas_token(self, container: str) -> str:
        """A shared access signature for one day: read, add, create, write, delete, list in a container."""
        expiry = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        resource = f"/blob/{self.account}/{container}"
        signed = ["racwdl", "", expiry, resource, "", "", "", API_VERSION, "c", *[""] * 7]
        fields = {"sp": "racwdl", "se": expiry, "sv": API_VERSION, "sr": "c"}
        return urllib.parse.urlencode({**fields, "sig": self._signature("\n".join(signed))})

    def start(self) -> None:
        super().start()
        for container in self.containers:
            self._request("PUT", container, {"restype": "container"})

    def names(self, container: str, prefix: str = "") -> list[str]:
        """Every blob as it is stored, also one that marks a folder."""
        query = {"comp": "list", "prefix": prefix, "restype": "container"}
        tree = ElementTree.fromstring(self._request("GET", container, query))
        return [name.text or "" for name in tree.iter("Name")]

    def _command(self) -> list[str | Path]:
        accounts = f"AZURITE_ACCOUNTS={self.account}:{self.key}"
        options = ["--silent", "--skipApiVersionCheck", "--disableTelemetry", "--blobHost", HOST]
        paths: list[str | Path] = ["env", accounts, "node", self._program, "--location", self.folder]
        return [*paths, *options, "--blobPort", str(self.port)]

    def _is_ready(self) -> bool:
        return is_open(self.port)

    def _request(self, method: str, path: str, query: dict[str, str]) -> bytes:
        """``query``: sorted by name, as the signature lists it."""
        date = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
        resource = f"/{self.account}/{self.account}/{path}" + "".join(f"\n{n}:{v}" for n, v in query.items())
        headers = {"x-ms-date": date, "x-ms-version": API_VERSION}
        signed = "\n".join([method, *[""] * 11, *(f"{name}:{value}" for name, value in headers.items()), resource])
        headers["Authorization"] = f"SharedKey {self.account}:{self._signature(signed)}"
        url = f"{self.endpoint}/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(urllib.request.Request(url, method=method, headers=headers)) as answer:
            content: bytes = answer.read()
        return content

    def _signature(self, text: str) -> str:
        return base64.b64encode(hmac.digest(base64.b64decode(self.key), text.encode(), hashlib.sha256)).decode()


def program() -> Path:
    """The script of the server, installed with npm into the user's cache if it is missing. Raises NotInstalled
    (ENV014)."""
    folder = user_cache() / "environments" / PACKAGE.replace("@", "-")
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        _install(folder)
    return folder / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"


def _install(folder: Path) -> None:
    """Several processes may install it: each into a folder of its own, which gets the name when it is complete."""
    scratch = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    scratch.chmod(0o755)
    options = ["--no-audit", "--no-fund", "--ignore-scripts", "--omit=optional", "--silent"]
    try:
        subprocess.run(
            ["npm", "install", "--prefix", str(scratch), *options, PACKAGE], check=True, capture_output=True, text=True
        )
        scratch.rename(folder)
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        raise NotInstalled.of(
            "ENV014",
            "Azurite cannot be installed",
            where=str(folder),
            found=str(getattr(error, "stderr", "") or error).strip().splitlines()[-1],
            allowed="Node 20 or later with npm, and a package registry that can be reached",
            do=f"install Node and npm, then: npm install {PACKAGE}",
        ) from error
    except OSError:
        if not folder.exists():
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
