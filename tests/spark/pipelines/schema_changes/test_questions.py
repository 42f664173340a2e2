"""An operator answers what becomes of a table whose schema changed; the other tables go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.control.answers import answer_open_question, question_of
from airflow_cdc_provider.control.questions import unanswered
from airflow_cdc_provider.control.samples import sample_of
from airflow_cdc_provider.core.errors import CommandRefused
from airflow_cdc_provider.core.spec.definition import Ignorable, TableRule
from airflow_cdc_provider.core.spec.schema_policy import OnChange, OnDrop, SchemaPolicy
from airflow_cdc_provider.core.table.questions import Answer, Question
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
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

ASK = SchemaPolicy(*[OnChange.ASK, OnDrop.ASK, *[OnChange.ASK] * 5])  # type: ignore[arg-type]
STOP = SchemaPolicy(truncate=OnChange.STOP)
RULES = (
    *(TableRule(f"public.q{number}", schema_changes=ASK) for number in range(9)),
    TableRule("public.sibling"),
    TableRule("public.stopped", schema_changes=STOP),
    TableRule("public.truncates_ignored", schema_changes=STOP, ignore=(Ignorable.TRUNCATE,)),
    TableRule("public.deletes_ignored", schema_changes=STOP, ignore=(Ignorable.DELETE,)),
)


class Questions(PolicyPipeline):
    """Tables q0 to q8 ask; the others do not."""

    def alter(self, table: str, *actions: str, row: str = "") -> Question:
        """Returns the question about the table."""
        return self.asked(table, *(f"ALTER TABLE {{t}} {action}" for action in actions), *([row] if row else []))

    def asked(self, table: str, *statements: str) -> Question:
        """Returns the question about the table."""
        self.replicate("sibling", "UPDATE {t} SET a = a + 1")
        run_id = self.replicate(table, "UPDATE {t} SET a = a + 1", *statements)
        question = question_of(self.control(f"public.{table}"))
        assert question and question in unanswered(self.replicator(), run_id), self.row(table)
        assert self.row(table).state is TableState.BLOCKED and self.outcome("sibling") == SAME
        return question

    def replicate(self, table: str, *statements: str) -> str:
        """And replicate the changes. Returns the id of the last run."""
        with psycopg.connect(self.server.dsn(DATABASE), autocommit=True) as connection:
            execute(connection, table, statements)
        return [self.run().run_id for _ in range(3)][-1]

    def ids(self, table: str) -> set[int]:
        return {row["id"] for row in self._copy(table)}

    def answer(self, question: Question, answer: Answer) -> None:
        answer_open_question(self.replicator(), question, answer, "ada", "because")
        for _ in range(4):
            self.run()


@pytest.fixture(scope="module")
def questions(
    postgres: EmbeddedPostgres, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Questions]:
    folder = tmp_path_factory.mktemp("questions")
    with new_schema("postgres", postgres, DATABASE) as database, source_database(postgres, ()) as source:
        for rule in RULES:
            execute(source, rule.source.removeprefix("public."), MAKE)
        definition = policy_definition(folder, database.target, RULES)
        made = Questions(folder, spark, definition, "public", kind="postgres", server=postgres, database=database)
        made.run_until_idle()
        yield made


@pytest.mark.nightly
def test_a_wider_type_is_applied_as_proposed(questions: Questions) -> None:
    asked = questions.alter("q0", "ALTER b TYPE bigint", row="INSERT INTO {t} (id, b) VALUES (4, 1::bigint << 40)")
    assert asked.changes == ("column b changed from int32 to int64",)
    assert asked.statements == ('ALTER TABLE "policies"."q0" ALTER COLUMN "b" TYPE bigint;',)
    assert asked.answers == (Answer.APPLY, Answer.IGNORE, Answer.RESYNC, Answer.LEAVE)
    assert sample_of(questions.replicator(), asked).records > 0
    questions.answer(asked, Answer.APPLY)
    assert questions.outcome("q0") == SAME


@pytest.mark.nightly
def test_a_new_column_is_added_or_ignored(questions: Questions) -> None:
    insert = "INSERT INTO {t} (id, b, z) VALUES (4, 4, 4)"
    added, ignored = questions.alter("q1", "ADD z int", row=insert), questions.alter("q2", "ADD z int", row=insert)
    assert added.statements == () and Answer.APPLY in added.answers
    questions.answer(added, Answer.APPLY)
    questions.answer(ignored, Answer.IGNORE)
    assert questions.outcome("q1") == SAME
    assert "z" not in next(iter(questions._copy("q2"))) and len(list(questions._copy("q2"))) == 4
    assert questions.control("public.q2").ignored == ("z",)
    assert questions.alter("q2", "ADD y int").changes == ("column y int32 was added",)


@pytest.mark.nightly
def test_a_narrower_type_is_copied_again(questions: Questions) -> None:
    asked = questions.alter("q3", "ALTER b TYPE smallint", row="INSERT INTO {t} (id, b) VALUES (4, 4)")
    assert Answer.APPLY not in asked.answers and asked.statements == ()
    questions.answer(asked, Answer.RESYNC)
    assert questions.outcome("q3") == SAME


@pytest.mark.nightly
def test_other_values_that_the_stream_does_not_show_are_copied_again(questions: Questions) -> None:
    asked = questions.alter("q4", "ALTER v TYPE char(9)")
    assert asked.answers == (Answer.RESYNC, Answer.LEAVE)
    questions.answer(asked, Answer.RESYNC)
    assert questions.outcome("q4") == SAME


@pytest.mark.nightly
def test_a_renamed_column_is_renamed(questions: Questions) -> None:
    asked = questions.alter("q5", "RENAME v TO w", row="INSERT INTO {t} (id, b, w) VALUES (4, 4, 'w4')")
    assert asked.changes == ("column v was renamed to w",)
    questions.answer(asked, Answer.APPLY)
    assert questions.outcome("q5") == SAME


def test_an_answer_counts_once_and_only_while_its_question_is_open(questions: Questions) -> None:
    asked = questions.alter("q6", "DROP v", row="INSERT INTO {t} (id, b) VALUES (4, 4)")
    replicator = questions.replicator()
    with pytest.raises(CommandRefused, match="CMD042"):
        answer_open_question(replicator, replace(asked, answers=(Answer.RENAME,)), Answer.RENAME, "ada", "")
    questions.answer(asked, Answer.LEAVE)
    assert questions.row("q6").state is TableState.BLOCKED
    first = answer_open_question(replicator, asked, Answer.APPLY, "ada", "")
    assert answer_open_question(replicator, asked, Answer.APPLY, "bob", "") == first
    with pytest.raises(CommandRefused, match=r"CMD041.*apply by ada"):
        answer_open_question(replicator, asked, Answer.RESYNC, "bob", "")
    for _ in range(3):
        questions.run()
    assert questions.outcome("q6") == SAME
    with pytest.raises(CommandRefused, match=r"CMD043.*the answer apply by ada"):
        answer_open_question(replicator, asked, Answer.RESYNC, "bob", "")


@pytest.mark.nightly
def test_an_operator_decides_whether_a_truncate_is_applied(questions: Questions) -> None:
    insert = "INSERT INTO {t} (id, b) VALUES (9, 9)"
    applied, ignored = (questions.asked(table, insert, "TRUNCATE {t}", insert) for table in ("q7", "q8"))
    assert applied.changes == (f"all rows were removed by TRUNCATE in window {applied.window + 1}",)
    assert applied.answers == (Answer.APPLY, Answer.IGNORE, Answer.RESYNC, Answer.LEAVE)
    assert questions.ids("q7") == {1, 2, 3}
    questions.answer(applied, Answer.APPLY)
    questions.answer(ignored, Answer.IGNORE)
    assert questions.outcome("q7") == SAME and questions.ids("q7") == {9}
    assert questions.row("q8").state is TableState.REPLICATING and questions.ids("q8") == {1, 2, 3, 9}
    questions.replicate("q8", "UPDATE {t} SET a = 5")
    assert questions.asked("q8", "TRUNCATE {t}").id != ignored.id


def test_a_truncate_stops_its_table_where_the_policy_says_so(questions: Questions) -> None:
    questions.replicate("stopped", "INSERT INTO {t} (id, b) VALUES (9, 9)", "TRUNCATE {t}")
    assert "TRUNCATE" in questions.row("stopped").reason and questions.ids("stopped") == {1, 2, 3}


def test_operations_that_a_table_ignores_leave_its_rows(questions: Questions) -> None:
    questions.replicate("truncates_ignored", "DELETE FROM {t} WHERE id = 1", "TRUNCATE {t}", MAKE[1])
    questions.replicate("truncates_ignored", "DELETE FROM {t} WHERE id = 2", "TRUNCATE {t}")
    assert questions.ids("truncates_ignored") == {1, 3}
    questions.replicate("deletes_ignored", "DELETE FROM {t} WHERE id = 1")
    assert questions.ids("deletes_ignored") == {1, 2, 3}
    assert questions.row("deletes_ignored").state is TableState.REPLICATING
