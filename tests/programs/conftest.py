"""The servers of all programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.life import Servers
from tests.spark.conftest import SOCKETS
from tests.spark.conftest import mariadb as mariadb
from tests.spark.conftest import postgres as postgres
from tests.spark.conftest import spark as spark


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.filterwarnings(f"ignore:{SOCKETS}:pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture(scope="session")
def servers(request: pytest.FixtureRequest) -> Servers:
    return Servers(*(request.getfixturevalue(name) for name in ("postgres", "mariadb", "spark")))
