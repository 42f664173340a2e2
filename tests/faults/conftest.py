"""This layer breaks things on a real Airflow that runs the checkout."""

from __future__ import annotations

import sys

import pytest

from tests.whole_road import airflow, home, scenario, server

__all__ = ["airflow", "home", "interpreter", "scenario", "server"]


@pytest.fixture(scope="session")
def interpreter() -> str:
    return sys.executable
