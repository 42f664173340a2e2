"""The login of a ``google_cloud_platform`` connection, whose extra has the keys of Airflow's own hook.

A key of a service account is given by its content or by a file of the host. Without one, the credentials are those of
the host: application default credentials, workload identity. ``impersonation_chain`` names the account to act as, after
those in between.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from airflow_cdc_provider.core.connections.allowed_extras import (
    allowed_options,
    boolean_option,
    file_path_option,
    option_not_allowed,
)
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.tls import is_loopback, not_verified
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.registry import load_library

PREFIX = "extra__google_cloud_platform__"
"""Before the keys of older connections."""

KEY, KEY_FILE, ANONYMOUS, STORAGE = "keyfile_dict", "key_path", "is_anonymous", "endpoint_url"
OPTIONS = frozenset({KEY, KEY_FILE, ANONYMOUS, STORAGE, "scope", "project", "impersonation_chain"})
IGNORED = frozenset({"num_retries"})
SCOPE = "https://www.googleapis.com/auth/cloud-platform"

TOKEN_SERVER = "https://oauth2.googleapis.com/token"
TOKEN_HOSTS = frozenset({"oauth2.googleapis.com", "accounts.google.com", "www.googleapis.com"})
KEY_FIELDS = ("type", "project_id", "private_key_id", "private_key", "client_email", "client_id", "token_uri")
"""The fields of a key that are passed on. Libraries read others that name servers."""


@dataclass(frozen=True)
class GivenLogin:
    """What a connection names: one of the three, or the login of the host. ``key``: the fields of a service account's
    key. ``key_file``: its path on every host."""

    key: Mapping[str, str] = field(default_factory=dict, repr=False)
    key_file: str = ""
    anonymous: bool = False


def google_options(
    connection: ConnectionInfo, allowed: Set[str] = OPTIONS, ignored: Set[str] = IGNORED
) -> dict[str, Any]:
    """Raises CheckFailed (CON040) for other keys of the extra."""
    extra = {str(name).removeprefix(PREFIX): value for name, value in connection.extra.items()}
    return allowed_options(replace(connection, extra=extra), allowed, ignored)


def google_endpoint(connection: ConnectionInfo) -> str:
    """The URL of the API; empty for Google's own. Others are endpoints of a private network, or a stand-in."""
    if not connection.host:
        return ""
    host = connection.host if "://" in connection.host else f"https://{connection.host}"
    return f"{host}:{connection.port}" if connection.port else host


def storage_endpoint(connection: ConnectionInfo, options: Mapping[str, Any]) -> str:
    """The URL of Cloud Storage; empty for Google's own. Raises CheckFailed (CON040) if a login would be sent there
    unencrypted."""
    url = str(options.get(STORAGE, "")).rstrip("/")
    if url:
        require_encrypted(connection, url, f"an {STORAGE}", f"{STORAGE}: ")
    return url


def require_encrypted(connection: ConnectionInfo, url: str, what: str, key: str = "") -> None:
    """Raises CheckFailed (CON040) for the URL of another host without TLS. ``what`` it is, for the error; ``key``: what
    stands before it."""
    if not url.startswith("https://") and not is_loopback(url):
        raise option_not_allowed(
            connection, f"{what} without https://", f"{key}https://host; http:// on this host only"
        )


def google_tls_warnings(connection: ConnectionInfo) -> list[Problem]:
    if urlsplit(google_endpoint(connection)).scheme in ("", "https"):
        return []
    do = "write `https://` in the host of the connection, or leave the host empty"
    return [not_verified(connection.connection_id, "host: http", do)]


def google_login(connection: ConnectionInfo, kind: str) -> tuple[Any, str]:
    """Credentials of google-auth, and the project that they name. ``kind``: the type of target that needs them. Raises
    CheckFailed (CON040), NotInstalled, and errors of google-auth."""
    given = google_options(connection)
    scopes = [scope.strip() for scope in str(given.get("scope") or SCOPE).split(",")]
    credentials, project = _credentials(connection, given, scopes, kind)
    if chain := _chain(given.get("impersonation_chain")):
        impersonated = load_library("google.auth.impersonated_credentials", "target", kind)
        credentials = impersonated.Credentials(credentials, chain[-1], scopes, delegates=list(chain[:-1]))
    return credentials, str(given.get("project") or project or "")


def google_account(connection: ConnectionInfo) -> str:
    """The member of a grant; a placeholder where the credentials do not name their account."""
    given = google_options(connection)
    chain = _chain(given.get("impersonation_chain"))
    email = chain[-1] if chain else _key(connection, given_login(connection, given)).get("client_email")
    return f"serviceAccount:{email or 'ACCOUNT OF THE CONNECTION'}"


def given_login(connection: ConnectionInfo, options: Mapping[str, Any]) -> GivenLogin:
    """Raises CheckFailed (CON040) for values that are not allowed, and for two logins."""
    anonymous = ANONYMOUS in options and boolean_option(connection, ANONYMOUS, options[ANONYMOUS])
    given = [name for name in (KEY, KEY_FILE) if name in options] + [ANONYMOUS] * anonymous
    if len(given) > 1:
        raise option_not_allowed(connection, " and ".join(given), "one of them")
    return GivenLogin(
        service_account_key(connection, options[KEY]) if KEY in options else {},
        file_path_option(connection, KEY_FILE, options[KEY_FILE]) if KEY_FILE in options else "",
        anonymous,
    )


def service_account_key(connection: ConnectionInfo, value: Any) -> dict[str, str]:
    """The key of a service account, from its JSON or from an object. Raises CheckFailed (CON040) for other kinds of
    credentials, which name programs to run and URLs to request, and for a token server that is not Google's."""
    try:
        loaded = dict(json.loads(value) if isinstance(value, str) else value)
        key = {name: loaded[name] for name in KEY_FIELDS if isinstance(loaded.get(name), str)}
    except (ValueError, TypeError):
        key = {}
    if key.get("type") != "service_account" or not (key.get("client_email") and key.get("private_key")):
        found = "credentials that are not the key of a service account"
        raise option_not_allowed(connection, found, f"{KEY} or {KEY_FILE}: the JSON key of a service account")
    server = urlsplit(key.setdefault("token_uri", TOKEN_SERVER))
    if (server.scheme != "https" or server.netloc not in TOKEN_HOSTS) and not is_loopback(key["token_uri"]):
        raise option_not_allowed(connection, "a key with a token_uri that is not Google's", TOKEN_SERVER)
    return key


def _credentials(
    connection: ConnectionInfo, given: Mapping[str, Any], scopes: list[str], kind: str
) -> tuple[Any, str | None]:
    login = given_login(connection, given)
    if login.anonymous:
        return load_library("google.auth.credentials", "target", kind).AnonymousCredentials(), None
    key = _key(connection, login)
    if not key:
        return load_library("google.auth", "target", kind).default(scopes=scopes)  # type: ignore[no-any-return]
    account = load_library("google.oauth2.service_account", "target", kind)
    return account.Credentials.from_service_account_info(key, scopes=scopes), key.get("project_id")


def _key(connection: ConnectionInfo, login: GivenLogin) -> Mapping[str, str]:
    """Empty if there is none. Reads the file on this host."""
    if not login.key_file:
        return login.key
    with open(login.key_file, encoding="utf-8") as file:
        return service_account_key(connection, file.read())


def _chain(given: Any) -> tuple[str, ...]:
    listed = given.split(",") if isinstance(given, str) else given or ()
    return tuple(str(one).strip() for one in listed if str(one).strip())
