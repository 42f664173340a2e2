"""Tables that are created, dropped and renamed at the source, under each policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.control.answers import answer_open_question, open_questions
from airflow_cdc_provider.control.questions import unanswered
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.errors import CommandRefused
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.schema_policy import OnChange, SchemaPolicy
from airflow_cdc_provider.core.spec.table_policy import OnDroppedTable, OnNewTable
from airflow_cdc_provider.core.table.questions import Answer
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.faults.worker import request
from tests.spark.databases import new_schema
from tests.spark.pipelines.schema_changes.statements import SAME
from tests.spark.pipelines.schema_changes.test_policies import (
    DATABASE,
    MAKE,
    PolicyPipeline,
    execute,
    policy_definition,
    source_database,
)

pytestmark = [pytest.mark.jvm, pytest.mark.server]

RULES = (
    TableRule("public.copied_*"),
    TableRule("public.asked_*", new_tables=OnNewTable.ASK),
    TableRule("public.ignored_*", new_tables=OnNewTable.IGNORE),
    TableRule("public.stopped_*", dropped_tables=OnDroppedTable.STOP),
    TableRule("public.dropped_*", dropped_tables=OnDroppedTable.DROP),
    TableRule("public.named"),
    TableRule("public.swung"),
    TableRule("public.followed", schema_changes=SchemaPolicy(rename=OnChange.APPLY)),
    TableRule("public.confirmed", schema_changes=SchemaPolicy(rename=OnChange.ASK)),
)
FIRST = (
    *("copied_1", "asked_1", "ignored_1", "stopped_1", "dropped_1", "dropped_2"),
    *("named", "swung", "followed", "confirmed"),
)
ROW = "INSERT INTO {t} (id, a, b) VALUES (9, 9, 9)"


class ListedTables(PolicyPipeline):
    def at_source(self, table: str, *statements: str) -> None:
        with psycopg.connect(self.server.dsn(DATABASE), autocommit=True) as connection:
            execute(connection, table, statements)

    def settle(self) -> None:
        """Runs until the only work left is to report blocked tables."""
        self._until_quiet()

    def is_missed(self, table: str) -> bool:
        """Whether a run reports that the source no longer lists the table."""
        return any("TBL004" in problem and f"public.{table}" in problem for problem in self.run().problems)

    def equals(self, table: str, name: str) -> bool:
        """Whether the copy equals the table that has this name now."""
        names, truth = self.truth(name)
        rows = [[row[column] for column in names] for row in self._copy(table)]
        return Counter(tuple(None if value is None else str(value) for value in row) for row in rows) == truth

    def has_copy(self, table: str) -> bool:
        return self.replicator().target.state(f"public.{table}", table).exists


@pytest.fixture(scope="module")
def listed(
    postgres: EmbeddedPostgres, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ListedTables]:
    folder = tmp_path_factory.mktemp("listed")
    with new_schema("postgres", postgres, DATABASE) as database, source_database(postgres, ()) as source:
        for table in FIRST:
            execute(source, table, MAKE)
        definition = policy_definition(folder, database.target, RULES)
        made = ListedTables(folder, spark, definition, "public", kind="postgres", server=postgres, database=database)
        made.settle()
        assert {table for table in FIRST if made.outcome(table) == SAME} == set(FIRST)
        yield made


def test_new_tables_are_copied_asked_about_or_ignored(listed: ListedTables) -> None:
    for table in ("copied_2", "asked_2", "asked_3", "ignored_2"):
        listed.at_source(table, *MAKE)
    listed.settle()
    assert listed.outcome("copied_2") == SAME
    assert {table: listed.row(table).state for table in ("asked_2", "asked_3", "ignored_2")} == dict.fromkeys(
        ("asked_2", "asked_3", "ignored_2"), TableState.NEW
    )
    last = listed.run()
    replicator, questions = listed.replicator(), open_questions(listed.replicator())
    assert set(questions) == {"public.asked_2", "public.asked_3"}
    assert set(unanswered(replicator, last.run_id)) == set(questions.values())
    answer_open_question(replicator, questions["public.asked_2"], Answer.APPLY, "ada", "")
    answer_open_question(replicator, questions["public.asked_3"], Answer.IGNORE, "ada", "")
    listed.settle()
    assert listed.outcome("asked_2") == SAME
    assert listed.row("asked_3").state is TableState.NEW and "ada" in listed.row("asked_3").reason
    assert not listed.has_copy("asked_3") and not listed.has_copy("ignored_2") and not open_questions(replicator)
    with pytest.raises(CommandRefused, match="CMD043"):
        answer_open_question(replicator, questions["public.asked_2"], Answer.IGNORE, "ada", "")


def test_copies_of_dropped_tables_are_kept_dropped_or_stop(listed: ListedTables) -> None:
    for table in ("copied_1", "stopped_1", "dropped_1", "named"):
        listed.at_source(table, "DROP TABLE {t}")
    listed.run()
    assert listed.row("copied_1").state is listed.row("dropped_1").state is TableState.DROPPED
    assert listed.has_copy("copied_1") and not listed.has_copy("dropped_1")
    assert listed.row("stopped_1").state is listed.row("named").state is TableState.BLOCKED
    assert listed.is_missed("stopped_1") and listed.is_missed("named")
    for table in ("stopped_1", "dropped_1", "named"):
        listed.at_source(table, *MAKE)
    listed.settle()
    assert listed.outcome("dropped_1") == SAME


def test_the_copy_of_a_renamed_table_is_not_dropped(listed: ListedTables) -> None:
    listed.at_source("dropped_2", "ALTER TABLE {t} RENAME TO away")
    assert listed.is_missed("dropped_2") and listed.has_copy("dropped_2")
    listed.at_source("dropped_2", "ALTER TABLE away RENAME TO {t}", "UPDATE {t} SET a = 7")
    listed.settle()
    assert listed.outcome("dropped_2") == SAME


def test_changes_under_a_name_between_two_runs_are_copied(listed: ListedTables) -> None:
    listed.at_source("swung", "ALTER TABLE {t} RENAME TO swinging")
    listed.at_source("swinging", "UPDATE {t} SET a = 7 WHERE id = 1", ROW, "ALTER TABLE {t} RENAME TO swung")
    listed.settle()
    assert listed.outcome("swung") == SAME


@pytest.mark.nightly
def test_a_renamed_table_is_followed_without_another_copy(listed: ListedTables) -> None:
    listed.at_source("followed", "UPDATE {t} SET a = 7 WHERE id = 1", "ALTER TABLE {t} RENAME TO moved")
    listed.at_source("moved", ROW, "ALTER TABLE {t} ADD w text")
    listed.settle()
    listed.at_source("moved", "UPDATE {t} SET w = 'w'")
    listed.settle()
    assert listed.equals("followed", "moved")
    floor = listed.control("public.followed").floor
    tables = {"tables": ["public.followed"], "key": "again", "arguments": {}}
    request(listed.replicator(), CommandKind.RESYNC, tables)
    listed.settle()
    listed.at_source("moved", "DELETE FROM {t} WHERE id = 2")
    listed.settle()
    assert listed.equals("followed", "moved") and listed.control("public.followed").floor > floor
    listed.at_source("moved", "ALTER TABLE {t} RENAME TO followed", "UPDATE followed SET a = 1")
    listed.settle()
    assert listed.outcome("followed") == SAME


def test_an_operator_confirms_that_a_table_was_renamed(listed: ListedTables) -> None:
    listed.at_source("confirmed", "ALTER TABLE {t} RENAME TO other")
    listed.at_source("other", ROW)
    listed.settle()
    question = open_questions(listed.replicator())["public.confirmed"]
    assert question.changes == ("the table was renamed to public.other",)
    answer_open_question(listed.replicator(), question, Answer.APPLY, "ada", "")
    listed.at_source("other", "UPDATE {t} SET a = 3 WHERE id = 3")
    listed.settle()
    assert listed.equals("confirmed", "other")
