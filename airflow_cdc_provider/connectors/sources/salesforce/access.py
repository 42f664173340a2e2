"""Read an Airflow connection of type ``salesforce``: the fields of Airflow's Salesforce provider, and the OAuth flow.

| flow | fields |
|---|---|
| refresh token | `consumer_key`, `refresh_token`; `consumer_secret` if the app requires it; `refresh_token_file` |
| JWT | `consumer_key`, `private_key` or `private_key_file_path`, login = user name |
| client credentials | `consumer_key`, `consumer_secret`, and My Domain as `instance_url` or `domain` |

The first flow whose fields are set is used. A password is never used: Salesforce is retiring the password flow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from airflow_cdc_provider.connectors.sources.salesforce.options import Environment, SalesforceOptions
from airflow_cdc_provider.core.connections.allowed_extras import allowed_options, file_path_option, option_not_allowed
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed

LEGACY_PREFIX = "extra__salesforce__"
SHARED_LOGINS = {
    Environment.PRODUCTION: "https://login.salesforce.com",
    Environment.SANDBOX: "https://test.salesforce.com",
}


FILES = ("private_key_file_path", "refresh_token_file")
ALLOWED = frozenset(
    {
        *FILES,
        "consumer_key",
        "consumer_secret",
        "domain",
        "instance",
        "instance_url",
        "organization_id",
        "private_key",
        "proxies",
        "refresh_token",
    }
)
IGNORED = frozenset({"client_id", "security_token", "session_id", "version"})


class Flow(StrEnum):
    REFRESH_TOKEN = "refresh_token"
    JWT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    CLIENT_CREDENTIALS = "client_credentials"


@dataclass(frozen=True)
class Access:
    """``login_url`` is the server that issues tokens, without path. ``audience`` is that of a JWT. ``org_id`` and
    ``refresh_token_file`` (for tokens that replace ``refresh_token``) are empty if the connection does not set them.
    ``repr`` shows no secret."""

    connection_id: str
    flow: Flow
    login_url: str
    consumer_key: str
    audience: str
    username: str = ""
    org_id: str = ""
    consumer_secret: str = field(default="", repr=False)
    private_key: str = field(default="", repr=False)
    refresh_token: str = field(default="", repr=False)
    refresh_token_file: str = ""
    proxies: Mapping[str, str] = field(default_factory=dict, repr=False)


def read_access(info: ConnectionInfo, options: SalesforceOptions) -> Access:
    """Raises CheckFailed: CON012 if the fields are sufficient for no flow, CON040 if the extra has a key or value that
    is not allowed."""
    extra = allowed_options(replace(info, extra=_extra(info.extra)), ALLOWED, IGNORED)
    for name in FILES:
        if name in extra:
            extra[name] = file_path_option(info, name, extra[name])
    key = _private_key(info, extra)
    flow = _flow(info, extra, key)
    shared = SHARED_LOGINS[_environment(extra, options)]
    login_url = options.login_url or _my_domain(info, extra) or shared
    if flow is Flow.CLIENT_CREDENTIALS and login_url in SHARED_LOGINS.values():
        raise CheckFailed.of(
            "CON012",
            "the client credentials flow requires the org's My Domain address",
            where=f"connection {info.connection_id}",
            found=login_url,
            allowed="My Domain",
            do="add `instance_url` (https://<my domain>.my.salesforce.com) to the extra of the connection",
        )
    if not is_secure(login_url):
        found = f"{login_url}, which sends the credentials unencrypted"
        raise option_not_allowed(info, found, "https://…, or http:// on this host")
    return Access(
        info.connection_id,
        flow,
        login_url.rstrip("/"),
        extra["consumer_key"],
        shared,
        info.login,
        str(extra.get("organization_id") or ""),
        str(extra.get("consumer_secret") or ""),
        key,
        str(extra.get("refresh_token") or ""),
        str(extra.get("refresh_token_file") or ""),
        extra.get("proxies") or {},
    )


def is_secure(url: str) -> bool:
    """Whether the URL is encrypted or on this host."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return parts.scheme == "https" or host == "localhost" or host.startswith("127.")


def _extra(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Older connections prefix the names of their fields."""
    plain = {name.removeprefix(LEGACY_PREFIX): value for name, value in extra.items() if name.startswith(LEGACY_PREFIX)}
    return plain | {name: value for name, value in extra.items() if not name.startswith(LEGACY_PREFIX)}


def _flow(info: ConnectionInfo, extra: Mapping[str, Any], key: str) -> Flow:
    if extra.get("consumer_key"):
        if extra.get("refresh_token"):
            return Flow.REFRESH_TOKEN
        if key and info.login:
            return Flow.JWT
        if extra.get("consumer_secret"):
            return Flow.CLIENT_CREDENTIALS
    given = [name for name in ("consumer_key", "consumer_secret", "refresh_token") if extra.get(name)]
    given += ["private key"] if key else []
    given += ["login"] if info.login else []
    given += ["password, which is not used"] if info.password else []
    raise CheckFailed.of(
        "CON012",
        "the connection has no complete set of credentials",
        where=f"connection {info.connection_id}",
        found=", ".join(given) or "none of them",
        allowed="consumer_key with consumer_secret; or with login and private_key; or with refresh_token",
        do="create an external client app in Salesforce and put its key into the extra of the connection",
    )


def _private_key(info: ConnectionInfo, extra: Mapping[str, Any]) -> str:
    path = extra.get("private_key_file_path")
    if extra.get("private_key") or not path:
        return str(extra.get("private_key") or "").replace("\\n", "\n")
    try:
        return Path(str(path)).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckFailed.of(
            "CON012",
            "the private key cannot be read",
            where=f"connection {info.connection_id}",
            found=type(error).__name__,
            allowed="a file in PEM form that this worker can read",
            do="correct `private_key_file_path`, or put the key itself into `private_key`",
        ) from error


def _environment(extra: Mapping[str, Any], options: SalesforceOptions) -> Environment:
    return Environment.SANDBOX if extra.get("domain") == "test" else options.environment


def _my_domain(info: ConnectionInfo, extra: Mapping[str, Any]) -> str:
    """The org's own URL, from a URL, a host or the part before ``.salesforce.com``; empty if none is set."""
    given = str(extra.get("instance_url") or extra.get("instance") or info.host or "")
    if given:
        parts = urlsplit(given if "//" in given else f"https://{given}")
        return f"{parts.scheme}://{parts.netloc}"
    domain = str(extra.get("domain") or "")
    return f"https://{domain}.salesforce.com" if domain not in ("", "login", "test") else ""
