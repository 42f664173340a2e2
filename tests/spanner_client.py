"""Google's own client of the stand-in for Spanner."""

from __future__ import annotations

import os
from typing import Any

from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import spanner

from airflow_cdc_provider.sandbox.server import HOST
from airflow_cdc_provider.sandbox.spanner import INSTANCE, PROJECT


def open_database(port: int, name: str) -> Any:
    """A new database."""
    os.environ["SPANNER_EMULATOR_HOST"] = f"{HOST}:{port}"  # the client reads it when it is created
    try:
        client = spanner.Client(
            project=PROJECT,
            credentials=AnonymousCredentials(),
            client_options=ClientOptions(),
            disable_builtin_metrics=True,
        )
    finally:
        del os.environ["SPANNER_EMULATOR_HOST"]
    database = client.instance(INSTANCE).database(name)
    database.create().result()
    return database
