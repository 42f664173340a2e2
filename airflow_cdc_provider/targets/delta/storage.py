"""Storage options of the deltalake library, and its errors as text."""

from __future__ import annotations

import os
import re

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.storage.access import require_own_credentials
from airflow_cdc_provider.core.storage.locations import Location
from airflow_cdc_provider.core.storage.stores import STORES, store_access

ERROR_CODE = re.compile(r"<Code>(\w+)</Code>")
ARROWS = re.compile(r"\x1b\[\d+m↳?|↳")


def storage_options(location: Location, connection: ConnectionInfo) -> dict[str, str]:
    """Empty for a folder. The library takes missing options from the environment. Raises CheckFailed: CON020, CON040,
    and CON021 if it would combine the connection's credentials with others of the environment."""
    if location.scheme not in STORES:
        return {}
    access = store_access(location, connection)
    require_own_credentials(access, connection, os.environ)
    return access.delta_options()


def error_text(error: Exception) -> str:
    """An error of the library in one line; the store's error code if there is one."""
    text = str(error)
    code = ERROR_CODE.search(text)
    detail = code[1] if code else " ".join(ARROWS.sub("", text).split())[:300]
    return f"{type(error).__name__}: {detail}"
