"""A feed with one table, whose column and whose name change again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_cdc_provider.core.spec.definition import Definition, Staging, TableRule, Target
from airflow_cdc_provider.core.spec.schema_policy import OnChange, SchemaPolicy
from tests.spark.pipelines.feeds.pipeline import FeedPipeline
from tests.spark.pipelines.schema_changes.reported.changing_source import Rows, text, texts
from tests.spark.pipelines.schema_changes.reported.feeds import ChangingDebeziumWithStatements, SimulatedTable
from tests.spark.targets_of_kinds import FEATURES, OPTIONS

TABLE = "d.t"


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

    def copied(self) -> Rows:
        columns = ("id", "a", "k", self.column)
        rows = self.pipeline.copied_rows(TABLE, "id", *columns)
        return {str(key): {name: text(value) for name, value in row.items()} for key, row in rows.items()}

    @property
    def floor(self) -> str:
        return self.pipeline.control(TABLE).floor


def renamed_feed(folder: Path, spark: SparkSession) -> RenamedFeed:
    """With a copy of the first rows."""
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
