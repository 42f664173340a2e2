"""What holds for every layer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.model import seeds

# Processes that tests start can be made to fail at the product's failpoints, too.
FAILPOINTS = str(Path(__file__).parent / "failpoints")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [FAILPOINTS, os.environ.get("PYTHONPATH")]))

# A busy machine is no failure of the code. Without a database of examples, a run does not depend on the one before.
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
