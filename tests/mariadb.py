"""The MariaDB server of the tests."""

from __future__ import annotations

import os

import pytest

from airflow_cdc_provider.core.errors import NotInstalled
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB


def embedded(**settings: str) -> EmbeddedMariaDB:
    """Where the server is not installed: skipped on a laptop, failed in CI."""
    try:
        return EmbeddedMariaDB({name.replace("_", "-"): value for name, value in settings.items()})
    except NotInstalled as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
