"""A run that is killed while a feed's column and table are renamed: the copy goes on, and is not made again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core import failpoints
from airflow_cdc_provider.core.spec.definition import Definition, Staging, TableRule, Target
from airflow_cdc_provider.core.spec.schema_policy import OnChange, SchemaPolicy
from tests.faults.dag_run import DagRun
from tests.spark.pipelines.feeds.pipeline import FeedPipeline
from tests.spark.pipelines.schema_changes.reported.changing_source import Rows, text, texts
from tests.spark.pipelines.schema_changes.reported.feeds import ChangingDebeziumWithStatements, SimulatedTable
from tests.spark.targets_of_kinds import FEATURES, OPTIONS

pytestmark = [pytest.mark.jvm]

TABLE = "d.t"
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


@dataclass
class RenamedFeed:
    """One table. ``column``: the name now of the column that was ``v`` first."""

    pipeline: FeedPipeline
    kit: ChangingDebeziumWithStatements
    table: SimulatedTable = field(default_factory=lambda: SimulatedTable("t"))
    column: str = "v"
    numbers: Iterator[int] = field(default_factory=lambda: count(5))

    def put(self, key: int, value: str) -> None:
        self.kit.put(self.table, key, a=key, k=key, **{self.column: value})

    def rename(self) -> None:
        """Rows before, between and after the statements, which rename the column and then the table."""
        number, before = next(self.numbers), self.table.name
        self.put(1, f"before {number}")
        former, self.column = self.column, f"v{number}"
        self.table.columns = {self.column if one == former else one: kind for one, kind in self.table.columns.items()}
        self.table.rows = {
            key: {self.column if one == former else one: value for one, value in row.items()}
            for key, row in self.table.rows.items()
        }
        self.kit.state(self.table, "ALTER", f"ALTER TABLE {before} RENAME COLUMN {former} TO {self.column}")
        self.put(2, f"between {number}")
        self.table.name = f"t{number}"
        self.kit.state(self.table, "ALTER", f"RENAME TABLE {before} TO {self.table.name}")
        self.put(number, "after")

    def run_until(self, inject: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> DagRun:
        """The run that was killed."""
        with monkeypatch.context() as patched:
            patched.setattr(failpoints, "_inject", inject)
            for _ in range(3):
                dag_run = self.pipeline.dag_run()
                try:
                    self.pipeline.execute(dag_run)
                except Killed:
                    return dag_run
        raise AssertionError("no run was killed")

    def copied(self) -> Rows:
        columns = ("id", "a", "k", self.column)
        rows = self.pipeline.copied_rows(TABLE, "id", *columns)
        return {str(key): {name: text(value) for name, value in row.items()} for key, row in rows.items()}

    @property
    def floor(self) -> str:
        return self.pipeline.control(TABLE).floor


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> RenamedFeed:
    folder = tmp_path_factory.mktemp("killed_renames")
    kit = ChangingDebeziumWithStatements(folder, format="debezium", topic_prefix="p")
    definition = Definition(
        name="feed",
        source=kit.source,
        target=Target("delta", f"{folder}/lake", options=OPTIONS[FEATURES]),
        tables=(TableRule(TABLE),),
        staging=Staging(f"{folder}/staging"),
        schema_changes=SchemaPolicy(rename=OnChange.APPLY),
    )
    made = RenamedFeed(FeedPipeline(folder, spark, definition), kit)
    kit.created(made.table)
    for key in (1, 2, 3):
        made.put(key, f"first {key}")
    made.pipeline.run_until_idle()
    assert made.copied() == texts(made.table.rows)
    return made


def killed_at(point: str) -> Callable[[str], None]:
    """For the first time that this point is reached."""
    remaining = [point]

    def inject(name: str) -> None:
        if name in remaining:
            remaining.remove(name)
            raise Killed(name)

    return inject


@pytest.mark.parametrize(
    "point", [pytest.param(one, marks=() if one in IN_EVERY_RUN else pytest.mark.nightly) for one in POINTS]
)
def test_a_killed_run_is_repeated(feed: RenamedFeed, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    floor = feed.floor
    feed.rename()
    killed = feed.run_until(killed_at(point), monkeypatch)
    assert feed.pipeline.execute(killed).green
    feed.pipeline.run_until_idle()
    assert feed.copied() == texts(feed.table.rows)
    assert feed.floor == floor, "copied again"
