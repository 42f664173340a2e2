"""The org with its servers, in threads of this process."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from airflow_cdc_provider.sandbox.salesforce.change_events import Rules
from airflow_cdc_provider.sandbox.salesforce.pubsub import PubSub
from airflow_cdc_provider.sandbox.salesforce.routes import handle
from airflow_cdc_provider.sandbox.salesforce.server import Server
from airflow_cdc_provider.sandbox.salesforce.state import CAPTURED, OrgState
from airflow_cdc_provider.sandbox.salesforce.tls import certificate, server_context


class SalesforceOrg(OrgState):
    """``with SalesforceOrg() as org``: ``org.instance_url`` (HTTP) and ``org.pubsub_endpoint`` (gRPC), on loopback.

    ``tls``: also an HTTPS server at ``org.tls_url``, whose certificate is in the file ``org.certificate``. ``port`` and
    ``pubsub_port`` 0: any free one. ``keepalive_s``: up to 270 s at Salesforce.
    """

    def __init__(
        self,
        port: int = 0,
        pubsub_port: int = 0,
        tls: bool = False,
        keepalive_s: float = 5.0,
        seed: int = 1,
        rules: Rules | None = None,
        captured: Iterable[str] = CAPTURED,
    ) -> None:
        super().__init__(seed, rules, captured)
        self.pubsub = PubSub(self.bus, self.channels, self.schemas, self.tokens, self.faults, keepalive_s)
        self._ports = port, pubsub_port
        self.certificate: Path | None = None
        if tls:
            self.certificate = certificate(Path(tempfile.mkdtemp(prefix="cdc-salesforce-")))
        self._servers: list[Server] = []

    def __enter__(self) -> SalesforceOrg:
        try:
            self.start()
        except (OSError, RuntimeError):
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Raises OSError or RuntimeError if a port is not free."""
        port, pubsub_port = self._ports
        handle_request = partial(handle, self)
        self.pubsub_endpoint = f"127.0.0.1:{self.pubsub.start(pubsub_port)}"
        plain = Server(handle_request, self.clock.now_ms, port)
        self.instance_url = f"http://127.0.0.1:{plain.port}"
        self._servers.append(plain)
        if self.certificate is not None:
            secure = Server(handle_request, self.clock.now_ms, tls=server_context(self.certificate))
            self.tls_url = f"https://127.0.0.1:{secure.port}"
            self._servers.append(secure)
        for server in self._servers:
            server.start()

    def stop(self) -> None:
        self.bulk.release()
        self.pubsub.stop()
        for server in self._servers:
            server.stop()
        if self.certificate is not None:
            shutil.rmtree(self.certificate.parent)
