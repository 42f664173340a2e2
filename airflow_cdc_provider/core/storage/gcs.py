"""Access to Google Cloud Storage, from an Airflow connection of type ``google_cloud_platform``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any, ClassVar

from airflow_cdc_provider.core.connections.allowed_extras import boolean_option, file_path_option
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.storage.access import RETRIES, is_loopback, options_of, refused
from airflow_cdc_provider.core.storage.locations import Location

KEY, KEY_FILE, ANONYMOUS, ENDPOINT = "keyfile_dict", "key_path", "is_anonymous", "endpoint_url"
EXTRA = frozenset({KEY, KEY_FILE, ANONYMOUS, ENDPOINT})
IGNORED = frozenset({"project", "num_retries", "scope"})

KEY_FIELDS = ("type", "project_id", "private_key_id", "private_key", "client_email", "client_id", "token_uri")
"""The fields of a key that are passed on. The libraries read others that name servers."""

TOKEN_SERVER = "https://oauth2.googleapis.com/token"
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
    """Raises CheckFailed: CON020 if the connection contains a setting that would be ignored, CON040 for a value that is
    not allowed."""
    options = options_of(connection, EXTRA, IGNORED)
    endpoint = str(options.get(ENDPOINT, "")).rstrip("/")
    if endpoint and not endpoint.startswith("https://") and not is_loopback(endpoint):
        raise refused(connection, f"an {ENDPOINT} without https://", "https://host; http:// on this host only")
    anonymous = ANONYMOUS in options and boolean_option(connection, ANONYMOUS, options[ANONYMOUS])
    given = [name for name in (KEY, KEY_FILE) if name in options] + [ANONYMOUS] * anonymous
    if len(given) > 1:
        raise refused(connection, " and ".join(given), f"one of {KEY}, {KEY_FILE}, {ANONYMOUS}")
    return GcsAccess(
        location,
        key=_key(connection, options[KEY]) if KEY in options else "",
        key_file=file_path_option(connection, KEY_FILE, options[KEY_FILE]) if KEY_FILE in options else "",
        anonymous=anonymous,
        endpoint=endpoint,
    )


def _key(connection: ConnectionInfo, value: Any) -> str:
    try:
        key = json.loads(value) if isinstance(value, str) else dict(value)
        complete = all(isinstance(key[name], str) and key[name] for name in ("client_email", "private_key"))
    except (ValueError, TypeError, KeyError):
        complete = False
    if not complete or key.get("type", "service_account") != "service_account":
        raise refused(connection, f"{KEY} that is not the key of a service account", "the JSON of such a key")
    server = str(key.setdefault("token_uri", TOKEN_SERVER))
    if not server.startswith("https://") and not is_loopback(server):
        raise refused(connection, f"{KEY} with a token_uri without https://", TOKEN_SERVER)
    fields = {"private_key_id": "", "client_id": "", **key, "type": "service_account"}
    return json.dumps({name: fields[name] for name in KEY_FIELDS if name in fields})
