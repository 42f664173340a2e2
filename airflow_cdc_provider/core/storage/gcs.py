"""Access to Google Cloud Storage, from an Airflow connection of type ``google_cloud_platform``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any, ClassVar

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.google import (
    ANONYMOUS,
    KEY,
    KEY_FILE,
    STORAGE,
    given_login,
    google_options,
    storage_endpoint,
)
from airflow_cdc_provider.core.connections.tls import is_loopback
from airflow_cdc_provider.core.storage.access import RETRIES
from airflow_cdc_provider.core.storage.locations import Location

OPTIONS = frozenset({KEY, KEY_FILE, ANONYMOUS, STORAGE})
"""Without ``impersonation_chain``, which two of the three libraries do not have."""
IGNORED = frozenset({"project", "num_retries", "scope"})

NO_TOKEN = json.dumps({"client_email": "", "private_key": "", "private_key_id": "", "disable_oauth": True})
"""A key with which the libraries send an empty token."""

VARIABLES = frozenset(
    {
        "GOOGLE_BEARER_TOKEN",
        "GOOGLE_SERVICE_ACCOUNT",
        "GOOGLE_SERVICE_ACCOUNT_KEY",
        "GOOGLE_SERVICE_ACCOUNT_PATH",
        "GOOGLE_SKIP_SIGNATURE",
    }
)

CONNECTOR = "com.google.cloud.hadoop.fs.gcs"
TOKENS = "airflow_cdc_provider.logstore.ServiceAccountTokens"
"""Our class, which takes the key from the settings; the connector itself reads keys from files only."""
HADOOP_KEY = "fs.gs.airflow.cdc.service.account.key"


@dataclass(frozen=True)
class GcsAccess:
    """``key``: a service account's key in JSON; ``key_file``: its path on every host. Neither: application default
    credentials (workload identity, the service account of the machine, ``GOOGLE_APPLICATION_CREDENTIALS``)."""

    ignores_environment: ClassVar[bool] = False

    location: Location
    key: str = field(default="", repr=False)
    key_file: str = ""
    anonymous: bool = False
    endpoint: str = ""

    def store_arguments(self) -> dict[str, Any]:
        return {
            "bucket": self.location.bucket,
            "prefix": self.location.path or None,
            "config": self._library_options(),
            "client_options": self._client_options(),
            "retry_config": RETRIES,
        }

    def delta_options(self) -> dict[str, str]:
        allow_http = {"allow_http": "true"} if self._client_options() else {}
        return {**self._library_options(), **allow_http}

    def hadoop_settings(self, environment: Mapping[str, str]) -> dict[str, str]:
        settings = {
            "fs.gs.impl": f"{CONNECTOR}.GoogleHadoopFileSystem",
            "fs.AbstractFileSystem.gs.impl": f"{CONNECTOR}.GoogleHadoopFS",
            **self._hadoop_credentials(),
        }
        return settings | ({"fs.gs.storage.root.url": f"{self.endpoint}/"} if self.endpoint else {})

    def overriding_variables(self) -> Set[str]:
        return VARIABLES if self.key or self.key_file or self.anonymous else set()

    def _library_options(self) -> dict[str, str]:
        options = {
            "google_service_account_key": NO_TOKEN if self.anonymous else self.key,
            "google_service_account": self.key_file,
            "google_base_url": self.endpoint,
        }
        return {name: value for name, value in options.items() if value}

    def _client_options(self) -> dict[str, bool]:
        return {"allow_http": True} if is_loopback(self.endpoint) else {}

    def _hadoop_credentials(self) -> dict[str, str]:
        if self.anonymous:
            return {"fs.gs.auth.type": "UNAUTHENTICATED"}
        if self.key:
            return {
                "fs.gs.auth.type": "ACCESS_TOKEN_PROVIDER",
                "fs.gs.auth.access.token.provider": TOKENS,
                HADOOP_KEY: self.key,
            }
        if self.key_file:
            return {
                "fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE",
                "fs.gs.auth.service.account.json.keyfile": self.key_file,
            }
        return {"fs.gs.auth.type": "APPLICATION_DEFAULT"}


def gcs_access(location: Location, connection: ConnectionInfo) -> GcsAccess:
    """Raises CheckFailed (CON040)."""
    options = google_options(connection, OPTIONS, IGNORED)
    login = given_login(connection, options)
    return GcsAccess(
        location,
        key=json.dumps({"private_key_id": "", "client_id": "", **login.key}) if login.key else "",
        key_file=login.key_file,
        anonymous=login.anonymous,
        endpoint=storage_endpoint(connection, options),
    )
