"""Storage options of the deltalake library, and its errors as text."""

from __future__ import annotations

import os
import re

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.storage.locations import S3, Location
from airflow_cdc_provider.core.storage.s3 import s3_access

S3_CODE = re.compile(r"<Code>(\w+)</Code>")
ARROWS = re.compile(r"\x1b\[\d+m↳?|↳")
SESSION_TOKEN = "AWS_SESSION_TOKEN"


def storage_options(location: Location, connection: ConnectionInfo) -> dict[str, str]:
    """Empty for a folder. The library takes missing options from the environment. Raises CheckFailed: CON020, and
    CON021 if it would combine the connection's key with a session token of the environment."""
    if location.scheme != S3:
        return {}
    access = s3_access(connection)
    if access.key and not access.token and os.environ.get(SESSION_TOKEN):
        raise CheckFailed.of(
            "CON021",
            f"{SESSION_TOKEN} in the environment does not belong to the connection's key",
            where=f"connection {connection.connection_id}, environment of the worker",
            found="a key in the connection and a session token in the environment",
            allowed="credentials from one of the two",
            do=f"unset {SESSION_TOKEN}, or remove the key from the connection",
        )
    options = {
        "aws_access_key_id": access.key,
        "aws_secret_access_key": access.secret,
        "aws_session_token": access.token,
        "aws_endpoint_url": access.endpoint,
        "aws_region": access.region,
        "aws_allow_http": "true" if access.uses_plain_http else "",
        # A commit creates a file that must not exist; the store has to report if it does.
        "aws_conditional_put": "etag",
    }
    return {name: value for name, value in options.items() if value}


def error_text(error: Exception) -> str:
    """An error of the library in one line; the store's error code if there is one."""
    text = str(error)
    code = S3_CODE.search(text)
    detail = code[1] if code else " ".join(ARROWS.sub("", text).split())[:300]
    return f"{type(error).__name__}: {detail}"
