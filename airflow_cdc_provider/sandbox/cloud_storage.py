"""A stand-in for Google Cloud Storage on loopback that ends with the process that started it."""

from __future__ import annotations

import json
import sys
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen
from xml.etree import ElementTree

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.sandbox.ports import free_ports, is_open
from airflow_cdc_provider.sandbox.server import HOST, EmbeddedServer

EMAIL = "cdc@project.iam.gserviceaccount.com"


class EmbeddedCloudStorage(EmbeddedServer):
    """Its buckets end with the server. ``account``: the service account that every request must belong to."""

    name = "CloudStorage"

    def __init__(self, *buckets: str, account: rsa.RSAPrivateKey | None = None) -> None:
        super().__init__()
        self.buckets = buckets
        self.account = account
        (self.port,) = free_ports(1)

    @property
    def endpoint(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def connection(self) -> ConnectionInfo:
        """As an Airflow connection of type ``google_cloud_platform`` provides it."""
        credentials = {"keyfile_dict": json.dumps(self.key)} if self.account else {"is_anonymous": True}
        return ConnectionInfo("objects", extra={"endpoint_url": self.endpoint, **credentials})

    @property
    def key(self) -> dict[str, Any]:
        """The key of the account, as Google's console writes it."""
        assert self.account is not None
        pem = self.account.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return {
            "type": "service_account",
            "project_id": "project",
            "private_key_id": "1",
            "private_key": pem.decode(),
            "client_email": EMAIL,
            "client_id": "1",
            "token_uri": f"{self.endpoint}/token",
        }

    def names(self, bucket: str, prefix: str = "") -> list[str]:
        """Every object as it is stored, also one that marks a folder."""
        query = urlencode({"list-type": "2", "prefix": prefix})
        request = Request(f"{self.endpoint}/{bucket}?{query}", headers=self._authorization())
        with urlopen(request) as answer:
            return [name.text or "" for name in ElementTree.fromstring(answer.read()).iter("Key")]

    def _authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token()}"} if self.account else {}

    def token(self) -> str:
        """A token of the account."""
        assert self.account is not None
        return jwt.encode({"iss": EMAIL}, self.account, algorithm="RS256")

    def _command(self) -> list[str]:
        module = "airflow_cdc_provider.sandbox.gcs.server"
        key_file = str(self._private("account.pem", self._public_key())) if self.account else ""
        return [sys.executable, "-m", module, str(self.port), key_file, *self.buckets]

    def _is_ready(self) -> bool:
        return is_open(self.port)

    def _public_key(self) -> str:
        assert self.account is not None
        return (
            self.account.public_key()
            .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
            .decode()
        )
