"""S3 access data from an Airflow connection, read the same way for staging, for Delta's library and for Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.storage.locations import parse_location

ENDPOINT, REGION, TOKEN = "endpoint_url", "region_name", "aws_session_token"
EXTRA = frozenset({ENDPOINT, REGION, TOKEN})

DEFAULT_REGION = "us-east-1"
"""The region that self-hosted stores expect in a signature. For AWS, the region of a bucket is looked up."""

# Only for short failures: Airflow and Spark retry after longer ones.
RETRIES = {"max_retries": 5, "retry_timeout": timedelta(seconds=30)}


@dataclass(frozen=True)
class S3Access:
    """No ``key``: the credentials of the environment (``AWS_*`` variables, web identity, the role of the container or
    instance). No ``endpoint``: AWS."""

    key: str = ""
    secret: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    endpoint: str = ""
    region: str = ""

    @property
    def uses_plain_http(self) -> bool:
        """Whether requests are unencrypted."""
        return self.endpoint.startswith("http://")


def s3_access(connection: ConnectionInfo) -> S3Access:
    """Read a connection of Airflow's type ``aws``. Raises CheckFailed (CON020) if it contains a setting that would be
    ignored."""
    extra = {name: value for name, value in connection.extra.items() if value not in (None, "")}
    unknown = sorted(set(extra) - EXTRA)
    if unknown:
        raise _refused(connection, ", ".join(unknown), f"in the extra: {', '.join(sorted(EXTRA))}")
    if bool(connection.login) != bool(connection.password):
        raise _refused(connection, "one half of a key", "login and password (access key and secret key), or neither")
    options = {name: str(value) for name, value in extra.items()}
    if not options.get(ENDPOINT, "https://").startswith(("http://", "https://")):
        raise _refused(connection, f"an {ENDPOINT} without http:// or https://", "http://host:port, https://host")
    return S3Access(
        key=connection.login,
        secret=connection.password,
        token=options.get(TOKEN, ""),
        endpoint=options.get(ENDPOINT, "").rstrip("/"),
        region=options.get(REGION, DEFAULT_REGION if ENDPOINT in options else ""),
    )


def bucket_arguments(location: str, access: S3Access) -> dict[str, Any]:
    """The arguments of ``obstore.store.S3Store`` for a bucket, or for a prefix in it."""
    parsed = parse_location(location)
    config = {"conditional_put": "etag", "endpoint": access.endpoint, "region": access.region}
    # As one object: single fields would be combined with a session token of the environment.
    credentials = {
        "access_key_id": access.key,
        "secret_access_key": access.secret,
        "token": access.token or None,
        "expires_at": None,
    }
    return {
        "bucket": parsed.bucket,
        "prefix": parsed.path or None,
        "config": {name: value for name, value in config.items() if value},
        "client_options": {"allow_http": True} if access.uses_plain_http else {},
        "retry_config": RETRIES,
        "credential_provider": (lambda: credentials) if access.key else None,
    }


def _refused(connection: ConnectionInfo, found: str, allowed: str) -> CheckFailed:
    return CheckFailed.of(
        "CON020",
        "the connection of an object store contains a setting that is not supported",
        where=f"connection {connection.connection_id}",
        found=found,
        allowed=allowed,
        do="correct the connection; to use a role of the environment, name no connection",
    )
