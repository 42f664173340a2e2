"""What an Airflow connection says of an S3 store: one reading for staging, for Delta's library and for Spark."""

from __future__ import annotations

from dataclasses import dataclass, field

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed, Problem

ENDPOINT, REGION, TOKEN = "endpoint_url", "region_name", "aws_session_token"
EXTRA = frozenset({ENDPOINT, REGION, TOKEN})

DEFAULT_REGION = "us-east-1"
"""What stores of one's own expect in a signature; AWS itself says which region a bucket is in."""


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
    def in_the_clear(self) -> bool:
        """Whether the store is reached over plain HTTP."""
        return self.endpoint.startswith("http://")


def s3_access(connection: ConnectionInfo) -> S3Access:
    """Reads a connection of Airflow's type ``aws``. Raises CheckFailed (CON020) where it asks for something that would
    be left out in silence."""
    extra = {name: value for name, value in connection.extra.items() if value not in (None, "")}
    unknown = sorted(set(extra) - EXTRA)
    if unknown:
        raise _refused(connection, ", ".join(unknown), f"in the extra: {', '.join(sorted(EXTRA))}")
    if bool(connection.login) != bool(connection.password):
        raise _refused(connection, "one half of a key", "login and password (access key and secret key), or neither")
    texts = {name: str(value) for name, value in extra.items()}
    if not texts.get(ENDPOINT, "https://").startswith(("http://", "https://")):
        raise _refused(connection, f"an {ENDPOINT} without http:// or https://", "http://host:port, https://host")
    return S3Access(
        key=connection.login,
        secret=connection.password,
        token=texts.get(TOKEN, ""),
        endpoint=texts.get(ENDPOINT, "").rstrip("/"),
        region=texts.get(REGION, DEFAULT_REGION if ENDPOINT in texts else ""),
    )


def _refused(connection: ConnectionInfo, found: str, allowed: str) -> CheckFailed:
    return CheckFailed(
        Problem(
            "CON020",
            "the connection of an object store says what we cannot follow",
            where=f"connection {connection.connection_id}",
            found=found,
            allowed=allowed,
            do="mend the connection; roles are taken from the environment, by leaving the connection out",
        )
    )
