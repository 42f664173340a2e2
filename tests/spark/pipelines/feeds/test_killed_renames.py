"""A run that is killed while a feed's column and table are renamed: the copy goes on, and is not made again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core import failpoints
from tests.faults.dag_run import DagRun
from tests.spark.pipelines.feeds.renamed_feed import RenamedFeed, copied_feed

pytestmark = [pytest.mark.jvm]

POINTS = (
    "plan.before",
    "plan.after",
    "schema.after",
    "seal.before",
    "seal.after",
    "alter.before",
    "alter.after",
    "stage.after_batch",
    "merge.before_commit",
    "merge.after_commit",
    "state.before",
)
IN_EVERY_RUN = ("seal.after", "alter.after")


class Killed(BaseException):
    pass


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> RenamedFeed:
    return copied_feed(tmp_path_factory.mktemp("killed_renames"), spark)


def killed_at(point: str) -> Callable[[str], None]:
    """For the first time that this point is reached."""
    remaining = [point]

    def inject(name: str) -> None:
        if name in remaining:
            remaining.remove(name)
            raise Killed(name)

    return inject


def run_until(feed: RenamedFeed, inject: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> DagRun:
    """The run that was killed."""
    with monkeypatch.context() as patched:
        patched.setattr(failpoints, "_inject", inject)
        for _ in range(3):
            dag_run = feed.pipeline.dag_run()
            try:
                feed.pipeline.execute(dag_run)
            except Killed:
                return dag_run
    raise AssertionError("no run was killed")


@pytest.mark.parametrize(
    "point", [pytest.param(one, marks=() if one in IN_EVERY_RUN else pytest.mark.nightly) for one in POINTS]
)
def test_a_killed_run_is_repeated(feed: RenamedFeed, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    floor = feed.floor
    feed.rename()
    killed = run_until(feed, killed_at(point), monkeypatch)
    assert feed.pipeline.execute(killed).green
    feed.pipeline.run_until_idle()
    feed.require_equal()
    assert feed.floor == floor, "copied again"
