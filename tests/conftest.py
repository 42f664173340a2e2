"""Settings of every layer."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.model import seeds

if TYPE_CHECKING:
    from tests.buckets import RunningStores

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


def pytest_collection_finish() -> None:
    """What was imported stays: the garbage collector does not look at it again."""
    gc.freeze()


def pytest_report_header() -> str:
    return f"seed {seeds.seed()}"


@pytest.fixture(scope="session")
def object_stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStores]:
    """The servers of the session, one of each kind."""
    from tests.buckets import RunningStores  # most tests need none

    with RunningStores(tmp_path_factory.mktemp("stores")) as stores:
        yield stores
