"""Converts an Airflow connection of a schema registry to settings of the client library.

host                  https://registry.example.com, also with a path or a context
login, password       basic authentication
extra                 certificates, or a token and where to get it; which ids Apicurio's converter writes
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from airflow_cdc_provider.core.connections.allowed_extras import (
    allowed_options,
    boolean_option,
    file_path_option,
    option_not_allowed,
)
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.tls import LOOPBACK_URL, VERIFY, host_authorities, not_verified
from airflow_cdc_provider.core.errors import CheckFailed, Problem

URL, AUTHORITY, LOGIN = "url", "ssl.ca.location", "basic.auth.user.info"
CERTIFICATE, KEY, KEY_PASSWORD = "ssl.certificate.location", "ssl.key.location", "ssl.key.password"
FILES = (AUTHORITY, CERTIFICATE, KEY)
TOKEN, ISSUER, CLUSTER = "bearer.auth.token", "bearer.auth.issuer.endpoint.url", "bearer.auth.logical.cluster"
POOL, CREDENTIALS = "bearer.auth.identity.pool.id", "bearer.auth.credentials.source"
CLIENT = ("bearer.auth.client.id", "bearer.auth.client.secret", "bearer.auth.scope")
USE_ID, IDS = "apicurio.registry.use-id", ("globalId", "contentId")
ALLOWED = frozenset({*FILES, KEY_PASSWORD, TOKEN, ISSUER, CLUSTER, POOL, *CLIENT, VERIFY, USE_ID})
"""No ``bearer.auth.custom.…``, which call functions."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
SAFE_URL = re.compile(rf"https://[^\s@?#]+|{LOOPBACK_URL.pattern}")
REQUESTS = {"timeout": 30, "max.retries": 3, "retries.wait.ms": 300}
"""A request waits seconds; the second and third retry wait two and four times as long as the first, at most."""


def client_settings(connection: ConnectionInfo) -> dict[str, Any]:
    """Raises CheckFailed: CON040 if the extra contains an option or value that is not allowed, CON050 if there is no
    valid address."""
    options = allowed_options(connection, ALLOWED)
    apicurio_ids(connection)
    settings: dict[str, Any] = {URL: address(connection), **REQUESTS}
    settings |= {name: file_path_option(connection, name, options[name]) for name in FILES if name in options}
    if KEY_PASSWORD in options:
        settings[KEY_PASSWORD] = str(options[KEY_PASSWORD])
    if (KEY in options or KEY_PASSWORD in options) and CERTIFICATE not in options:
        raise option_not_allowed(connection, f"{KEY} without {CERTIFICATE}", f"both, or {CERTIFICATE} alone")
    if not _is_verified(connection, options):
        settings[AUTHORITY] = False
    elif AUTHORITY not in settings and (authority := host_authorities()):
        settings[AUTHORITY] = authority
    if connection.login:
        settings[LOGIN] = f"{connection.login}:{connection.password}"
    return settings | _bearer(connection, options)


def address(connection: ConnectionInfo) -> str:
    """The URL of the registry. Raises CheckFailed (CON050)."""
    host = connection.host.rstrip("/")
    url = host if "://" in host else f"{connection.schema or 'https'}://{host}"
    if host and connection.port and urlsplit(url).port is None:
        scheme, _, rest = url.partition("://")
        name, slash, path = rest.partition("/")
        url = f"{scheme}://{name}:{connection.port}{slash}{path}"
    parts = urlsplit(url)
    if not host or parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
        raise CheckFailed.of(
            "CON050",
            "the connection of a schema registry has no valid address",
            where=f"host of connection {connection.connection_id}",
            found="no host" if not host else "a host that is not a URL, or a URL with a login or a query",
            allowed="https://registry.example.com, https://registry.example.com:8081/apis/ccompat/v7",
            do="correct the connection; login and password have fields of their own",
        )
    return url


def apicurio_ids(connection: ConnectionInfo) -> tuple[str, ...]:
    """What ``schemaId`` may be: one, if the connection declares it. Raises CheckFailed (CON040)."""
    declared = allowed_options(connection, ALLOWED).get(USE_ID)
    if declared is None:
        return IDS
    if declared not in IDS:
        raise option_not_allowed(connection, f"{USE_ID} of another value", " or ".join(IDS))
    return (str(declared),)


def tls_warnings(connection: ConnectionInfo) -> list[Problem]:
    """Verification that the connection turns off, and secrets that it sends without encryption."""
    options = allowed_options(connection, ALLOWED)
    if not _is_verified(connection, options):
        do = f"remove `{VERIFY}`, and set `{AUTHORITY}` to the file of the registry's certificate authority"
        return [not_verified(connection.connection_id, f"{VERIFY}: false", do)]
    parts = urlsplit(address(connection))
    if (
        parts.scheme == "http"
        and parts.hostname not in LOOPBACK
        and (connection.login or options.keys() & {TOKEN, ISSUER})
    ):
        return [not_verified(connection.connection_id, "a login over http://", "use https:// in the host")]
    return []


def _is_verified(connection: ConnectionInfo, options: Mapping[str, Any]) -> bool:
    verified = boolean_option(connection, VERIFY, options[VERIFY]) if VERIFY in options else True
    if not verified and AUTHORITY in options:
        raise option_not_allowed(connection, f"{VERIFY}: false with {AUTHORITY}", "one of them")
    return verified


def _bearer(connection: ConnectionInfo, options: Mapping[str, Any]) -> dict[str, str]:
    """A token, or a client that requests tokens."""
    names = {TOKEN, ISSUER, CLUSTER, POOL, *CLIENT} & options.keys()
    if not names:
        return {}
    requests_tokens = ISSUER in options
    required = {ISSUER, *CLIENT} if requests_tokens else {TOKEN}
    found = sorted(required - names) or sorted(names - required - {CLUSTER, POOL})
    if found or connection.login:
        allowed = f"{TOKEN}, or {ISSUER} with {', '.join(CLIENT)}; no login"
        raise option_not_allowed(connection, "an incomplete or second way to authenticate", allowed)
    if requests_tokens and not SAFE_URL.fullmatch(str(options[ISSUER])):
        raise option_not_allowed(connection, f"{ISSUER} that is not an https:// URL", f"{ISSUER}: https://…")
    values = {name: str(options[name]) for name in names}
    # The library requires it, and other registries ignore it.
    return {CREDENTIALS: "OAUTHBEARER" if requests_tokens else "STATIC_TOKEN", CLUSTER: "", **values}
