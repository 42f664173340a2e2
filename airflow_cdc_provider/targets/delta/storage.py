"""Delta's library and buckets: what it is told to reach one, and what it says where it cannot."""

from __future__ import annotations

import os
import re

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.core.storage.locations import S3, Location
from airflow_cdc_provider.core.storage.s3 import s3_access

S3_CODE = re.compile(r"<Code>(\w+)</Code>")
ARROWS = re.compile(r"\x1b\[\d+m↳?|↳")
SESSION_TOKEN = "AWS_SESSION_TOKEN"


def storage_options(place: Location, connection: ConnectionInfo) -> dict[str, str]:
    """Empty for a folder. What is left out the library takes from the environment. Raises CheckFailed: CON020, and
    CON021 where it would put a session token of the environment beside the connection's key."""
    if place.scheme != S3:
        return {}
    access = s3_access(connection)
    if access.key and not access.token and os.environ.get(SESSION_TOKEN):
        raise CheckFailed(
            Problem(
                "CON021",
                f"{SESSION_TOKEN} of the environment belongs to another key",
                where=f"connection {connection.connection_id}, environment of the worker",
                found="a key in the connection and a session token in the environment",
                allowed="credentials from one of the two",
                do=f"unset {SESSION_TOKEN}, or leave the key out of the connection",
            )
        )
    options = {
        "aws_access_key_id": access.key,
        "aws_secret_access_key": access.secret,
        "aws_session_token": access.token,
        "aws_endpoint_url": access.endpoint,
        "aws_region": access.region,
        "aws_allow_http": "true" if access.uses_plain_http else "",
        # A commit is a file that must not exist yet, and the store has to say so.
        "aws_conditional_put": "etag",
    }
    return {name: value for name, value in options.items() if value}


def in_words(error: Exception) -> str:
    """An error of the library in one line: the store's own word for it, where it has one."""
    text = str(error)
    code = S3_CODE.search(text)
    told = code[1] if code else " ".join(ARROWS.sub("", text).split())[:300]
    return f"{type(error).__name__}: {told}"
