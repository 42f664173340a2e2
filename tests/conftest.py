"""Settings of every layer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.model import seeds

# Failpoints of the product can also be armed in processes that tests start.
FAILPOINTS = str(Path(__file__).parent / "failpoints")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [FAILPOINTS, os.environ.get("PYTHONPATH")]))

# No deadline, for a busy machine; no database of examples, so that a run does not depend on the previous one.
settings.register_profile(
    "layers",
    deadline=None,
    database=None,
    derandomize=not seeds.chosen(),
    max_examples=100 * seeds.times(),
    print_blob=True,
)
settings.load_profile("layers")


def pytest_configure(config: pytest.Config) -> None:
    if seeds.chosen():
        config.option.hypothesis_seed = seeds.seed()


def pytest_report_header() -> str:
    return f"seed {seeds.seed()}"
