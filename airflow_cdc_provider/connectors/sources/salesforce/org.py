"""An org and its API clients."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Any

from airflow_cdc_provider.connectors.sources.salesforce.access import is_secure, read_access
from airflow_cdc_provider.connectors.sources.salesforce.bulk import Bulk
from airflow_cdc_provider.connectors.sources.salesforce.http import Http
from airflow_cdc_provider.connectors.sources.salesforce.oauth import Login
from airflow_cdc_provider.connectors.sources.salesforce.options import SalesforceOptions
from airflow_cdc_provider.connectors.sources.salesforce.pubsub import PubSub
from airflow_cdc_provider.connectors.sources.salesforce.rest import Rest
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.registry import load_library


class Org:
    """Connects on first use."""

    def __init__(self, info: ConnectionInfo, options: SalesforceOptions, replicator: str) -> None:
        self.info = info
        self.options = options
        self.replicator = replicator
        self._http: Http | None = None
        self._lock = threading.Lock()

    @property
    def location(self) -> str:
        """``where`` of problems."""
        return f"connection {self.info.connection_id}, channel {self.options.channel}"

    def identity(self) -> dict[str, str]:
        return {"org_id": self.http.token().org_id}

    @cached_property
    def instance(self) -> str:
        """Name of the org's current instance. Replay ids become invalid when Salesforce moves an org to another
        instance."""
        (row,) = self.rest.query("SELECT Id, InstanceName FROM Organization")
        return str(row["InstanceName"])

    @property
    def http(self) -> Http:
        """Shared by concurrent copies: a refresh token may be valid only once."""
        with self._lock:
            if self._http is None:
                session = _requests().Session()
                self._http = Http(Login(read_access(self.info, self.options), session), session)
            return self._http

    @cached_property
    def rest(self) -> Rest:
        return Rest(self.http, self.options.api_version)

    @cached_property
    def bulk(self) -> Bulk:
        return Bulk(self.http, self.options.api_version)

    @cached_property
    def pubsub(self) -> PubSub:
        """Raises CheckFailed (SRC033) if the token would be sent over a network unencrypted."""
        endpoint, tls = self.options.pubsub_endpoint, self.options.pubsub_tls
        if not tls and not is_secure(f"grpc://{endpoint}"):
            raise CheckFailed.of(
                "SRC033",
                "without TLS the token would be sent unencrypted",
                where="`pubsub_tls` under `source`",
                found=f"pubsub_tls: false for {endpoint}",
                allowed="pubsub_tls: false for an endpoint on this host",
                do="remove `pubsub_tls`",
            )
        return PubSub(endpoint, tls, self.http)


def _requests() -> Any:
    """After a check of every package of the extra."""
    for name in ("fastavro", "google.protobuf", "grpc", "jwt"):
        load_library(name, "source", "salesforce")
    return load_library("requests", "source", "salesforce")
