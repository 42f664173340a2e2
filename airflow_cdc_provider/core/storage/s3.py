"""Access to S3, from an Airflow connection of type ``aws``."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any, ClassVar

from airflow_cdc_provider.core.connections.allowed_extras import allowed_options
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.storage.access import RETRIES, refused
from airflow_cdc_provider.core.storage.locations import Location

ENDPOINT, REGION, TOKEN = "endpoint_url", "region_name", "aws_session_token"
EXTRA = frozenset({ENDPOINT, REGION, TOKEN})

DEFAULT_REGION = "us-east-1"
"""The region that self-hosted stores expect in a signature. For AWS, the region of a bucket is looked up."""

S3A = "org.apache.hadoop.fs.s3a"
SDK = "software.amazon.awssdk.auth.credentials"
ENVIRONMENT_PROVIDERS = (
    f"{SDK}.EnvironmentVariableCredentialsProvider",
    f"{SDK}.WebIdentityTokenFileCredentialsProvider",
    f"{S3A}.auth.IAMInstanceCredentialsProvider",
)


@dataclass(frozen=True)
class S3Access:
    """No ``key``: the credentials of the environment (``AWS_*`` variables, web identity, the role of the container or
    instance). No ``endpoint``: AWS."""

    ignores_environment: ClassVar[bool] = True

    location: Location
    key: str = ""
    secret: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    endpoint: str = ""
    region: str = ""

    @property
    def uses_plain_http(self) -> bool:
        """Whether requests are unencrypted."""
        return self.endpoint.startswith("http://")

    def store_arguments(self) -> dict[str, Any]:
        config = {"conditional_put": "etag", "endpoint": self.endpoint, "region": self.region}
        # As one object: single fields would be combined with a session token of the environment.
        credentials = {
            "access_key_id": self.key,
            "secret_access_key": self.secret,
            "token": self.token or None,
            "expires_at": None,
        }
        return {
            "bucket": self.location.bucket,
            "prefix": self.location.path or None,
            "config": {name: value for name, value in config.items() if value},
            "client_options": {"allow_http": True} if self.uses_plain_http else {},
            "retry_config": RETRIES,
            "credential_provider": (lambda: credentials) if self.key else None,
        }

    def delta_options(self) -> dict[str, str]:
        options = {
            "aws_access_key_id": self.key,
            "aws_secret_access_key": self.secret,
            "aws_session_token": self.token,
            "aws_endpoint_url": self.endpoint,
            "aws_region": self.region,
            "aws_allow_http": "true" if self.uses_plain_http else "",
            # A commit creates a file that must not exist; the store has to report if it does.
            "aws_conditional_put": "etag",
        }
        return {name: value for name, value in options.items() if value}

    def hadoop_settings(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The YAML uses the scheme s3, like other engines, so S3A is registered for it, too."""
        bucket = f"fs.s3a.bucket.{self.location.bucket}"
        return {
            "fs.s3.impl": f"{S3A}.S3AFileSystem",
            **{f"{bucket}.{name}": value for name, value in self._bucket_settings().items()},
        }

    def overriding_variables(self) -> Set[str]:
        return {"AWS_SESSION_TOKEN"} if self.key and not self.token else set()

    def _bucket_settings(self) -> dict[str, str]:
        # Delta's log store depends on it, whatever the cluster's default is.
        settings = {"create.conditional.enabled": "true"}
        if self.key:
            kind = "TemporaryAWSCredentialsProvider" if self.token else "SimpleAWSCredentialsProvider"
            settings |= {
                "aws.credentials.provider": f"{S3A}.{kind}",
                "access.key": self.key,
                "secret.key": self.secret,
                "session.token": self.token,
            }
        else:
            settings["aws.credentials.provider"] = ",".join(ENVIRONMENT_PROVIDERS)
        if self.endpoint:
            settings |= {"endpoint": self.endpoint, "path.style.access": "true"}
        if self.region:
            settings["endpoint.region"] = self.region
        return settings


def s3_access(location: Location, connection: ConnectionInfo) -> S3Access:
    """Raises CheckFailed: CON040 for an option that is not allowed, CON020 if a setting would be ignored."""
    options = {name: str(value) for name, value in allowed_options(connection, EXTRA).items()}
    if bool(connection.login) != bool(connection.password):
        raise refused(connection, "one half of a key", "login and password (access key and secret key), or neither")
    if not options.get(ENDPOINT, "https://").startswith(("http://", "https://")):
        raise refused(connection, f"an {ENDPOINT} without http:// or https://", "http://host:port, https://host")
    return S3Access(
        location,
        key=connection.login,
        secret=connection.password,
        token=options.get(TOKEN, ""),
        endpoint=options.get(ENDPOINT, "").rstrip("/"),
        region=options.get(REGION, DEFAULT_REGION if ENDPOINT in options else ""),
    )
