"""The login of a ``google_cloud_platform`` connection, whose extra has the keys of Airflow's own hook.

A key of a service account is given by its content or by a file of the host. Without one, the credentials are those of
the host: application default credentials, workload identity. ``impersonation_chain`` names the account to act as, after
those in between.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from airflow_cdc_provider.core.connections.allowed_extras import (
    allowed_options,
    boolean_option,
    file_path_option,
    option_not_allowed,
)
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.tls import not_verified
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.registry import load_library

PREFIX = "extra__google_cloud_platform__"
"""Before the keys of older connections."""

OPTIONS = frozenset({"keyfile_dict", "key_path", "scope", "project", "impersonation_chain", "is_anonymous"})
IGNORED = frozenset({"num_retries"})
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
TOKEN_HOSTS = frozenset({"oauth2.googleapis.com", "accounts.google.com", "www.googleapis.com"})


def google_options(connection: ConnectionInfo) -> dict[str, Any]:
    """Raises CheckFailed (CON040) for other keys of the extra."""
    extra = {str(name).removeprefix(PREFIX): value for name, value in connection.extra.items()}
    return allowed_options(replace(connection, extra=extra), OPTIONS, IGNORED)


def google_endpoint(connection: ConnectionInfo) -> str:
    """The URL of the API; empty for Google's own. Others are endpoints of a private network, or a stand-in."""
    if not connection.host:
        return ""
    host = connection.host if "://" in connection.host else f"https://{connection.host}"
    return f"{host}:{connection.port}" if connection.port else host


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
    key = _service_account_key(connection, given) or {}
    email = chain[-1] if chain else key.get("client_email")
    return f"serviceAccount:{email or 'ACCOUNT OF THE CONNECTION'}"


def _credentials(
    connection: ConnectionInfo, given: Mapping[str, Any], scopes: list[str], kind: str
) -> tuple[Any, str | None]:
    if "is_anonymous" in given and boolean_option(connection, "is_anonymous", given["is_anonymous"]):
        return load_library("google.auth.credentials", "target", kind).AnonymousCredentials(), None
    key = _service_account_key(connection, given)
    if key is None:
        return load_library("google.auth", "target", kind).default(scopes=scopes)  # type: ignore[no-any-return]
    account = load_library("google.oauth2.service_account", "target", kind)
    return account.Credentials.from_service_account_info(key, scopes=scopes), key.get("project_id")


def _service_account_key(connection: ConnectionInfo, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Raises CheckFailed (CON040) for other kinds of credentials: their files name programs to run and URLs to ask."""
    key = given.get("keyfile_dict")
    if key is None and "key_path" in given:
        with open(file_path_option(connection, "key_path", given["key_path"]), encoding="utf-8") as file:
            key = file.read()
    if key is None:
        return None
    try:
        loaded = json.loads(key) if isinstance(key, str) else dict(key)
    except ValueError:
        loaded = {}
    uri = urlsplit(str(loaded.get("token_uri", "")))
    if loaded.get("type") != "service_account" or uri.scheme != "https" or uri.netloc not in TOKEN_HOSTS:
        raise option_not_allowed(
            connection, "a key that is not a service account's of Google", "keyfile_dict or key_path: a JSON key"
        )
    return loaded


def _chain(given: Any) -> tuple[str, ...]:
    listed = given.split(",") if isinstance(given, str) else given or ()
    return tuple(str(one).strip() for one in listed if str(one).strip())
