"""What holds for every layer."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.model import seeds

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
