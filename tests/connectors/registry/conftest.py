"""A real schema registry of the session, and what reads its messages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_cdc_provider.core.errors import NotInstalled
from airflow_cdc_provider.sandbox.registry import EmbeddedRegistry


@pytest.fixture(scope="session")
def registry() -> Iterator[EmbeddedRegistry]:
    try:
        server = EmbeddedRegistry()
    except NotInstalled as missing:
        pytest.skip(f"the registry needs Java 21 or later: {missing}")
    with server:
        yield server
