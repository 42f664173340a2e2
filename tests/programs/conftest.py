"""The servers of all programs."""

from __future__ import annotations

import pytest

from tests.programs.life import Servers
from tests.spark.conftest import mariadb as mariadb
from tests.spark.conftest import postgres as postgres
from tests.spark.conftest import spark as spark


@pytest.fixture(scope="session")
def servers(request: pytest.FixtureRequest) -> Servers:
    return Servers(*(request.getfixturevalue(name) for name in ("postgres", "mariadb", "spark")))
