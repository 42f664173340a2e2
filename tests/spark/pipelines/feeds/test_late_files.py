"""Files of Debezium's events that are written again, touched or late, into Delta: the copies equal the source."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.control.answers import answer_question, open_questions
from airflow_cdc_provider.core.spec.definition import OnBadRecord, Source
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.schema_policy import OnChange, SchemaPolicy
from airflow_cdc_provider.core.table.questions import Answer
from tests.spark.pipelines.feeds.one_table import TABLE, change
from tests.spark.pipelines.feeds.pipeline import FeedPipeline, definition, line

pytestmark = pytest.mark.jvm

UNCHANGED = "__debezium_unavailable_value"


class Files:
    """A folder of events and its copy. Each file is newer than the one written before."""

    def __init__(self, folder: Path, spark: SparkSession, **rules: Any) -> None:
        self.events = folder / "events"
        self.events.mkdir()
        self._age_s = 3000.0
        options = {"format": "debezium", "location": str(self.events), "topic_prefix": "srv"}
        self.feed = FeedPipeline(
            folder, spark, definition(folder, Source("files", "", options=options), [TABLE], **rules)
        )

    def target(self, **options: Any) -> None:
        target = replace(self.feed.definition.target, options=options)
        self.feed.definition = replace(self.feed.definition, target=target)

    def write(self, name: str, *changes: Message, late_s: float = 0) -> None:
        (self.events / name).write_text("\n".join(map(line, changes)))
        self.touch(name, late_s)

    def touch(self, name: str, late_s: float = 0) -> None:
        self._age_s -= 10
        os.utime(self.events / name, (time.time() - self._age_s - late_s,) * 2)

    def run(self) -> dict[int, str]:
        """Key → v, after a successful run."""
        self.feed.run_successfully()
        return self.rows

    @property
    def rows(self) -> dict[int, str]:
        return {key: row["v"] for key, row in self.feed.copied_rows(TABLE, "id").items()}


def test_a_touched_file_restores_no_deleted_row(tmp_path: Path, spark: SparkSession) -> None:
    files = Files(tmp_path, spark)
    files.write("1", change(10, "c", 1, "a"), change(20, "c", 2, "b"))
    files.run()
    files.write("2", change(30, "d", 1, "a"), change(40, "u", 2, "c"))
    assert files.run() == {2: "c"}
    files.touch("1")
    assert files.run() == {2: "c"}
    files.write("1", change(10, "c", 1, "a"), change(20, "c", 2, "b"), change(50, "c", 3, "d"))
    assert files.run() == {2: "c", 3: "d"}, "what the file has got besides is applied"


def test_a_touched_file_with_a_truncate_empties_nothing(tmp_path: Path, spark: SparkSession) -> None:
    files = Files(tmp_path, spark)
    files.write("1", change(10, "c", 1, "a"))
    files.run()
    files.write("2", change(20, "t"))
    assert files.run() == {}
    files.write("3", change(30, "c", 2, "b"))
    assert files.run() == {2: "b"}
    files.touch("2")
    assert files.run() == {2: "b"}
    files.touch("1")
    assert files.run() == {2: "b"}


def test_a_late_file_is_applied_as_if_it_had_come_in_time(tmp_path: Path, spark: SparkSession) -> None:
    files = Files(tmp_path, spark)
    files.write("1", change(10, "c", 1, "a"), change(15, "c", 2, "b"))
    files.run()
    files.write("3", change(50, "d", 3), change(60, "u", 2, "newest"), change(70, "c", 4, "d"))
    assert files.run() == {1: "a", 2: "newest", 4: "d"}
    files.write(
        "2", change(20, "t"), change(30, "c", 3, "c"), change(40, "c", 2, "B"), change(45, "c", 5, "e"), late_s=99
    )
    assert files.run() == {2: "newest", 4: "d", 5: "e"}


def test_a_late_change_that_later_ones_with_unknown_columns_hide_stops_the_table(
    tmp_path: Path, spark: SparkSession
) -> None:
    files = Files(tmp_path, spark)
    files.write("1", change(10, "c", 1, "a", "long"))
    files.run()
    files.write("3", change(30, "u", 1, "c", UNCHANGED))
    assert files.run() == {1: "c"}
    files.write("2", change(20, "u", 1, "b", "longer"), late_s=99)
    assert any("TGT043" in problem for problem in files.feed.run().problems)


def test_a_late_truncate_stops_versions_and_the_same_one_again_does_not(tmp_path: Path, spark: SparkSession) -> None:
    """A row that was put back with equal values makes no version: nothing shows that it is newer than the truncate."""
    files = Files(tmp_path, spark, history=History.SCD2)
    files.write("1", change(10, "t"), change(20, "c", 1, "a"))
    files.run()
    files.touch("1")
    assert files.run() == {1: "a"}
    files.write("3", change(40, "c", 1, "a"))
    assert files.run() == {1: "a"}
    files.write("2", change(30, "t"), late_s=99)
    (problem,) = files.feed.run().problems
    assert "TGT043" in problem and "truncate" in problem and files.rows == {1: "a"}


def test_an_operator_is_asked_about_a_late_truncate_of_versions_before_it_stops_them(
    tmp_path: Path, spark: SparkSession
) -> None:
    files = Files(tmp_path, spark, history=History.SCD2, schema_changes=SchemaPolicy(truncate=OnChange.ASK))
    files.write("1", change(20, "c", 1, "a"), change(40, "c", 2, "b"))
    files.run()
    files.write("2", change(30, "t"), late_s=99)
    assert not any("TGT043" in problem for problem in files.feed.run().problems)
    replicator = files.feed.replicator()
    (question,) = open_questions(replicator).values()
    answer_question(replicator, question, Answer.IGNORE, "ada", "")
    assert files.run() == {1: "a", 2: "b"}


def test_a_touched_file_from_before_a_column_was_added_keeps_its_values(tmp_path: Path, spark: SparkSession) -> None:
    files = Files(tmp_path, spark)
    files.write("1", change(10, "c", 1, "a"), change(20, "c", 2, "b"))
    files.run()
    files.write("2", change(30, "u", 1, "A", x="x"))
    files.run()
    files.touch("1")
    files.write("4", change(25, "c", 3, "c"), late_s=99)
    files.run()
    files.write("5", change(40, "c", 4, "d", x="y"))
    assert files.run() == {1: "A", 2: "b", 3: "c", 4: "d"}
    assert {key: row["x"] for key, row in files.feed.copied_rows(TABLE, "id").items()} == {
        1: "x",
        2: None,
        3: None,
        4: "y",
    }


def test_a_touched_file_that_is_older_than_the_log_stops_the_table(tmp_path: Path, spark: SparkSession) -> None:
    files = Files(tmp_path, spark)
    staging = replace(files.feed.definition.staging, retain=timedelta(0))
    files.feed.definition = replace(files.feed.definition, staging=staging)
    files.write("1", change(10, "c", 1, "a"), change(20, "c", 2, "b"))
    files.run()
    files.write("2", change(30, "d", 1, "a"))
    for number in range(3, 9):
        files.run()
        files.write(str(number), change(10 * number + 10, "c", number, "z"))
    before = files.run()
    assert files.feed.replicator().log.oldest() > 3
    files.touch("1")
    assert any("TGT043" in problem for problem in files.feed.run().problems)
    assert files.rows == before


def test_a_late_change_from_before_a_column_was_renamed_keeps_its_values(tmp_path: Path, spark: SparkSession) -> None:
    """The messages have no ids of columns: an operator has said that the column was renamed."""
    rules = {"on_bad_record": OnBadRecord.QUARANTINE, "schema_changes": SchemaPolicy(rename=OnChange.ASK)}
    files = Files(tmp_path, spark, **rules)
    files.target(table_features=["columnMapping", "typeWidening"])
    files.write("1", change(10, "c", 1, "a"), change(20, "c", 2, "b"))
    files.run()
    files.write("2", change(30, "u", 2, "B", column="n"))
    assert files.feed.run().problems
    replicator = files.feed.replicator()
    (question,) = open_questions(replicator).values()
    answer_question(replicator, question, Answer.RENAME, "ada", "")
    files.feed.run_successfully()
    files.write("3", change(25, "c", 3, "late"), late_s=99)
    files.feed.run_successfully()
    rows = files.feed.copied_rows(TABLE, "id")
    assert {key: row["n"] for key, row in rows.items()} == {1: "a", 2: "B", 3: "late"}
    files.write("4", change(26, "u", 3, "waits", 5), late_s=99)  # type: ignore[arg-type]
    (problem,) = files.feed.run().problems
    assert "TGT043" in problem and "which would wait in quarantine" in problem
