"""A feed with one table, of which a column and the name change again and again."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_cdc_provider.core.spec.definition import Definition, Staging, TableRule, Target
from airflow_cdc_provider.core.spec.schema_policy import OnChange, SchemaPolicy
from tests.spark.pipelines.feeds.pipeline import FeedPipeline
from tests.spark.pipelines.schema_changes.reported.changing_source import text, texts
from tests.spark.pipelines.schema_changes.reported.feeds import ChangingDebeziumWithStatements, SimulatedTable
from tests.spark.targets_of_kinds import FEATURES, OPTIONS


class RenamedFeed:
    """``column``: the name now of the column that was ``v`` first. ``copy``: the table of the copy."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.kit = ChangingDebeziumWithStatements(folder, format="debezium", topic_prefix="p")
        self.table, self.column, self.copy = SimulatedTable("t"), "v", "d.t"
        self._numbers = count(5)
        self._definition = Definition(
            name="feed",
            source=self.kit.source,
            target=Target("delta", f"{folder}/lake", options=OPTIONS[FEATURES]),
            tables=(),
            staging=Staging(f"{folder}/staging"),
            schema_changes=SchemaPolicy(rename=OnChange.APPLY),
        )
        self._folder, self._spark = folder, spark
        self.kit.created(self.table)
        for key in (1, 2, 3):
            self.put(key, f"first {key}")

    @property
    def pipeline(self) -> FeedPipeline:
        definition = replace(self._definition, tables=(TableRule(self.copy),))
        return FeedPipeline(self._folder, self._spark, definition)

    def put(self, key: int, value: str) -> None:
        self.kit.put(self.table, key, a=key, k=key, **{self.column: value})

    def rename(self) -> None:
        """Rows before, between and after the statements, which rename the column and then the table."""
        number, before = next(self._numbers), self.table.name
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

    def require_equal(self) -> None:
        columns = ("id", "a", "k", self.column)
        rows = self.pipeline.copied_rows(self.copy, "id", *columns)
        assert {str(key): {name: text(value) for name, value in row.items()} for key, row in rows.items()} == texts(
            self.table.rows
        )

    @property
    def floor(self) -> str:
        return self.pipeline.control(self.copy).floor


def copied_feed(folder: Path, spark: SparkSession) -> RenamedFeed:
    made = RenamedFeed(folder, spark)
    made.pipeline.run_until_idle()
    made.require_equal()
    return made
