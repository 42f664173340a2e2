"""An org and the clients that talk to it."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Any

from airflow_cdc_provider.connectors.sources.salesforce.access import access_of, is_private
from airflow_cdc_provider.connectors.sources.salesforce.bulk import Bulk
from airflow_cdc_provider.connectors.sources.salesforce.http import Http
from airflow_cdc_provider.connectors.sources.salesforce.oauth import Login
from airflow_cdc_provider.connectors.sources.salesforce.options import SalesforceOptions
from airflow_cdc_provider.connectors.sources.salesforce.pubsub import PubSub
from airflow_cdc_provider.connectors.sources.salesforce.rest import Rest
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed, NotInstalled, Problem


class Org:
    """Talks to nobody until asked."""

    def __init__(self, info: ConnectionInfo, options: SalesforceOptions, replicator: str) -> None:
        self.info = info
        self.options = options
        self.replicator = replicator
        self._http: Http | None = None
        self._opening = threading.Lock()

    @property
    def place(self) -> str:
        """Where errors say it happened."""
        return f"connection {self.info.connection_id}, channel {self.options.channel}"

    def identity(self) -> dict[str, str]:
        return {"org_id": self.http.token().org_id}

    @cached_property
    def instance(self) -> str:
        """Where the org lives now. Salesforce moves orgs; they stay the same, and their replay ids do not."""
        (row,) = self.rest.query("SELECT Id, InstanceName FROM Organization")
        return str(row["InstanceName"])

    @property
    def http(self) -> Http:
        """One for all tables that are copied side by side: a refresh token may serve only once."""
        with self._opening:
            if self._http is None:
                session = _requests().Session()
                self._http = Http(Login(access_of(self.info, self.options), session), session)
            return self._http

    @cached_property
    def rest(self) -> Rest:
        return Rest(self.http, self.options.api_version)

    @cached_property
    def bulk(self) -> Bulk:
        return Bulk(self.http, self.options.api_version)

    @cached_property
    def pubsub(self) -> PubSub:
        """Raises CheckFailed (SRC033) where the token would go over a network in the clear."""
        endpoint, tls = self.options.pubsub_endpoint, self.options.pubsub_tls
        if not tls and not is_private(f"grpc://{endpoint}"):
            raise CheckFailed(
                Problem(
                    "SRC033",
                    "without TLS anybody on the way reads the token",
                    where="`pubsub_tls` under `source`",
                    found=f"pubsub_tls: false for {endpoint}",
                    allowed="pubsub_tls: false for an endpoint on this host",
                    do="remove `pubsub_tls`",
                )
            )
        return PubSub(endpoint, tls, self.http)


def _requests() -> Any:
    """All that the extra brings, or none of it: a worker that runs no Salesforce source need not have it."""
    try:
        import fastavro  # noqa: F401
        import google.protobuf  # noqa: F401
        import grpc  # noqa: F401
        import jwt  # noqa: F401
        import requests
    except ModuleNotFoundError as error:
        raise NotInstalled(
            Problem(
                "ENV010",
                "source type salesforce needs a package that is not installed",
                found=f"no package {error.name}",
                do="pip install 'airflow-cdc-provider[salesforce]'",
            )
        ) from error
    return requests
