"""Credentials of a ``google_cloud_platform`` connection, whose extra has the keys of Airflow's own hook.

A key is given by its content or by a file of the host. Without a key, the credentials are those of the host:
application default credentials, workload identity. ``impersonation_chain`` names the account to act as, after those in
between.
"""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from dataclasses import replace
from typing import Any

from airflow_cdc_provider.core.connections.allowed_extras import (
    allowed_options,
    boolean_option,
    file_path_option,
    option_not_allowed,
)
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.registry import load_library

PREFIX = "extra__google_cloud_platform__"
"""Earlier versions of Airflow store the keys with this prefix."""

KEY, KEY_FILE, CREDENTIAL_FILE = "keyfile_dict", "key_path", "credential_config_file"
CHAIN, ANONYMOUS, PROJECT = "impersonation_chain", "is_anonymous", "project"
OPTIONS = frozenset({KEY, KEY_FILE, CREDENTIAL_FILE, CHAIN, ANONYMOUS, PROJECT})
IGNORED = frozenset({"num_retries", "scope", "universe_domain"})

CLOUD_SCOPE = "https://www.googleapis.com/auth/cloud-platform"


def google_options(connection: ConnectionInfo, more: Set[str] = frozenset()) -> dict[str, Any]:
    """The allowed keys of the extra. ``more``: further allowed ones. Raises CheckFailed (CON040)."""
    extra = {str(name).removeprefix(PREFIX): value for name, value in connection.extra.items()}
    return allowed_options(replace(connection, extra=extra), OPTIONS | more, IGNORED)


def google_credentials(
    connection: ConnectionInfo, kind: str, more: Set[str] = frozenset(), scopes: Sequence[str] = (CLOUD_SCOPE,)
) -> tuple[Any, str]:
    """Credentials of google-auth, and the project. ``kind``: the type of target or source that needs them. Raises
    CheckFailed (CON040), NotInstalled, and errors of google-auth."""
    given = google_options(connection, more)
    found, project = _base_credentials(connection, given, kind, scopes)
    chain = given.get(CHAIN, ())
    accounts = [part.strip() for part in chain.split(",")] if isinstance(chain, str) else list(chain)
    if accounts:
        impersonated = load_library("google.auth.impersonated_credentials", "target", kind)
        found = impersonated.Credentials(found, accounts[-1], list(scopes), delegates=accounts[:-1])
    return found, str(given.get(PROJECT) or project or "")


def _base_credentials(
    connection: ConnectionInfo, given: dict[str, Any], kind: str, scopes: Sequence[str]
) -> tuple[Any, str | None]:
    auth = load_library("google.auth", "target", kind)
    if ANONYMOUS in given and boolean_option(connection, ANONYMOUS, given[ANONYMOUS]):
        return load_library("google.auth.credentials", "target", kind).AnonymousCredentials(), None
    if KEY in given:
        content = given[KEY]
        key = json.loads(content) if isinstance(content, str) else dict(content)
        if key.get("type") != "service_account":  # others may read files and send them to a server of their choice
            raise option_not_allowed(connection, f"{KEY} that is no key of a service account", "type: service_account")
        service_account = load_library("google.oauth2.service_account", "target", kind)
        return service_account.Credentials.from_service_account_info(key, scopes=scopes), key.get("project_id")
    for name in (KEY_FILE, CREDENTIAL_FILE):
        if name in given:
            path = file_path_option(connection, name, given[name])
            found, project = auth.load_credentials_from_file(path, scopes=scopes)
            return found, project
    found, project = auth.default(scopes=scopes)
    return found, project
