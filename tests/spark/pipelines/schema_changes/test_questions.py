"""An operator answers what becomes of a table whose schema changed; the other tables go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from airflow_cdc_provider.control.answers import answer_open_question, question_of
from airflow_cdc_provider.control.questions import unanswered
from airflow_cdc_provider.control.samples import sample_of
from airflow_cdc_provider.core.errors import CommandRefused
from airflow_cdc_provider.core.spec.definition import Ignorable, TableRule
from airflow_cdc_provider.core.spec.schema_policy import OnChange, OnDrop, SchemaPolicy
from airflow_cdc_provider.core.table.questions import Answer, Question
from airflow_cdc_provider.core.table.reported_changes import TableChange
from airflow_cdc_provider.core.table.states import TableState
from tests.spark.pipelines.schema_changes.decided import (
    FROM_MARIADB,
    FROM_POSTGRES,
    DecidedPipeline,
    decided_pipeline,
    in_every_run,
)
from tests.spark.pipelines.schema_changes.reported.databases import INSERT, MAKE, UPDATE
from tests.spark.pipelines.schema_changes.statements import SAME, alter

pytestmark = [pytest.mark.jvm, pytest.mark.server]

ASK = SchemaPolicy(*[OnChange.ASK, OnDrop.ASK, *[OnChange.ASK] * 5])  # type: ignore[arg-type]
STOP = SchemaPolicy(truncate=OnChange.STOP)
QUESTIONS = [f"q{number}" for number in range(9)]
RULES = (
    *(TableRule(table, schema_changes=ASK) for table in QUESTIONS),
    TableRule("sibling"),
    TableRule("stopped", schema_changes=STOP),
    TableRule("truncates_ignored", schema_changes=STOP, ignore=(Ignorable.TRUNCATE,)),
    TableRule("deletes_ignored", schema_changes=STOP, ignore=(Ignorable.DELETE,)),
)


class Questions(DecidedPipeline):
    """Tables q0 to q8 ask; the others do not."""

    def alter(self, table: str, change: TableChange, row: str = INSERT) -> Question:
        """Returns the question about the table."""
        return self.asked(table, *self.source.statements[change], row)

    def asked(self, table: str, *statements: str) -> Question:
        """Returns the question about the table."""
        self.replicate("sibling", "UPDATE {t} SET a = a + 1")
        run_id = self.replicate(table, UPDATE, *statements)
        question = question_of(self.control(self.name(table)))
        assert question and question in unanswered(self.replicator(), run_id), self.row(table)
        assert self.row(table).state is TableState.BLOCKED and self.outcome("sibling") == SAME
        return question

    def replicate(self, table: str, *statements: str) -> str:
        """And replicate the changes. Returns the id of the last run."""
        self.at_source(table, *statements)
        return [self.run().run_id for _ in range(3)][-1]

    def ids(self, table: str) -> set[int]:
        return {row["id"] for row in self._copy(table)}

    def answer(self, question: Question, answer: Answer) -> None:
        answer_open_question(self.replicator(), question, answer, "ada", "because")
        self.settle()


@pytest.fixture(scope="module", params=in_every_run(*FROM_POSTGRES, *FROM_MARIADB))
def questions(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Questions]:
    tables = [rule.source for rule in RULES]
    with decided_pipeline(Questions, RULES, tables, tmp_path_factory.mktemp("questions"), request) as pipeline:
        yield pipeline


from_postgres = pytest.mark.parametrize("questions", in_every_run(*FROM_POSTGRES), indirect=True)
"""MariaDB writes such changes as holes into the change log, about which no operator decides."""


@pytest.mark.nightly
def test_a_wider_type_is_applied_as_proposed(questions: Questions) -> None:
    asked = questions.alter("q0", TableChange.WIDEN, f"INSERT INTO {{t}} (id, a, k) VALUES (4, {1 << 40}, 4)")
    assert asked.changes == ("column a changed from int32 to int64",)
    (statement,) = asked.statements
    assert questions.target(asked.table) in statement and "bigint" in statement.lower()
    assert asked.answers == (Answer.APPLY, Answer.IGNORE, Answer.RESYNC, Answer.LEAVE)
    assert sample_of(questions.replicator(), asked).records > 0
    questions.answer(asked, Answer.APPLY)
    assert questions.outcome("q0") == SAME


@pytest.mark.nightly
def test_a_new_column_is_added_or_ignored(questions: Questions) -> None:
    insert = "INSERT INTO {t} (id, a, k, z) VALUES (4, 4, 4, 4)"
    added, ignored = (questions.alter(table, TableChange.ADD_COLUMN, insert) for table in ("q1", "q2"))
    assert added.statements == () and Answer.APPLY in added.answers
    questions.answer(added, Answer.APPLY)
    questions.answer(ignored, Answer.IGNORE)
    assert questions.outcome("q1") == SAME
    assert "z" not in next(iter(questions._copy("q2"))) and len(list(questions._copy("q2"))) == 4
    assert questions.control(questions.name("q2")).ignored == ("z",)
    assert questions.asked("q2", *alter("ADD y int")).changes == ("column y int32 was added",)


@from_postgres
@pytest.mark.nightly
def test_a_narrower_type_is_copied_again(questions: Questions) -> None:
    asked = questions.alter("q3", TableChange.NARROW)
    assert Answer.APPLY not in asked.answers and asked.statements == ()
    questions.answer(asked, Answer.RESYNC)
    assert questions.outcome("q3") == SAME


@from_postgres
@pytest.mark.nightly
def test_other_values_that_the_stream_does_not_show_are_copied_again(questions: Questions) -> None:
    asked = questions.asked("q4", *alter("ALTER v TYPE char(9)"))
    assert asked.answers == (Answer.RESYNC, Answer.LEAVE)
    questions.answer(asked, Answer.RESYNC)
    assert questions.outcome("q4") == SAME


@pytest.mark.nightly
def test_a_renamed_column_is_renamed(questions: Questions) -> None:
    asked = questions.alter("q5", TableChange.RENAME_COLUMN, "INSERT INTO {t} (id, a, k, v2) VALUES (4, 4, 4, 'w4')")
    assert asked.changes == ("column v was renamed to v2",)
    questions.answer(asked, Answer.APPLY)
    assert questions.outcome("q5") == SAME


def test_an_answer_counts_once_and_only_while_its_question_is_open(questions: Questions) -> None:
    asked = questions.alter("q6", TableChange.DROP_COLUMN)
    replicator = questions.replicator()
    with pytest.raises(CommandRefused, match="CMD042"):
        answer_open_question(replicator, replace(asked, answers=(Answer.RENAME,)), Answer.RENAME, "ada", "")
    questions.answer(asked, Answer.LEAVE)
    assert questions.row("q6").state is TableState.BLOCKED
    first = answer_open_question(replicator, asked, Answer.APPLY, "ada", "")
    assert answer_open_question(replicator, asked, Answer.APPLY, "bob", "") == first
    with pytest.raises(CommandRefused, match=r"CMD041.*apply by ada"):
        answer_open_question(replicator, asked, Answer.RESYNC, "bob", "")
    questions.settle()
    assert questions.outcome("q6") == SAME
    with pytest.raises(CommandRefused, match=r"CMD043.*the answer apply by ada"):
        answer_open_question(replicator, asked, Answer.RESYNC, "bob", "")


@pytest.mark.nightly
def test_an_operator_decides_whether_a_truncate_is_applied(questions: Questions) -> None:
    insert = "INSERT INTO {t} (id, a, k) VALUES (9, 9, 9)"
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
    questions.replicate("stopped", "INSERT INTO {t} (id, a, k) VALUES (9, 9, 9)", "TRUNCATE {t}")
    assert "TRUNCATE" in questions.row("stopped").reason and questions.ids("stopped") == {1, 2, 3}


def test_operations_that_a_table_ignores_leave_its_rows(questions: Questions) -> None:
    questions.replicate("truncates_ignored", "DELETE FROM {t} WHERE id = 1", "TRUNCATE {t}", MAKE[1])
    questions.replicate("truncates_ignored", "DELETE FROM {t} WHERE id = 2", "TRUNCATE {t}")
    assert questions.ids("truncates_ignored") == {1, 3}
    questions.replicate("deletes_ignored", "DELETE FROM {t} WHERE id = 1")
    assert questions.ids("deletes_ignored") == {1, 2, 3}
    assert questions.row("deletes_ignored").state is TableState.REPLICATING
