"""Tables that are created, dropped and renamed at the source, under each policy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_cdc_provider.control.answers import answer_open_question, open_questions
from airflow_cdc_provider.control.questions import unanswered
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.errors import CommandRefused
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.schema_policy import OnChange, SchemaPolicy
from airflow_cdc_provider.core.spec.table_policy import OnDroppedTable, OnNewTable
from airflow_cdc_provider.core.table.questions import Answer
from airflow_cdc_provider.core.table.states import TableState
from tests.faults.worker import request
from tests.spark.pipelines.schema_changes.decided import (
    FROM_MARIADB,
    FROM_POSTGRES,
    DecidedPipeline,
    decided_pipeline,
    in_every_run,
)
from tests.spark.pipelines.schema_changes.reported.databases import INSERT, MAKE
from tests.spark.pipelines.schema_changes.statements import SAME, STOPPED

pytestmark = [pytest.mark.jvm, pytest.mark.server]

RULES = (
    TableRule("copied_*", "{schema}_is_{table}"),
    TableRule("asked_*", new_tables=OnNewTable.ASK),
    TableRule("ignored_*", new_tables=OnNewTable.IGNORE),
    TableRule("stopped_*", dropped_tables=OnDroppedTable.STOP),
    TableRule("dropped_*", dropped_tables=OnDroppedTable.DROP),
    TableRule("named"),
    TableRule("swung"),
    TableRule("followed", schema_changes=SchemaPolicy(rename=OnChange.APPLY)),
    TableRule("confirmed", schema_changes=SchemaPolicy(rename=OnChange.ASK)),
)
FIRST = (
    *("copied_1", "asked_1", "ignored_1", "stopped_1", "dropped_1", "dropped_2"),
    *("named", "swung", "followed", "confirmed"),
)


class ListedTables(DecidedPipeline):
    def has_copy(self, table: str) -> bool:
        name = self.name(table)
        return self.replicator().targets.only.state(name, self.target(name)).exists


@pytest.fixture(scope="module", params=in_every_run(*FROM_POSTGRES, *FROM_MARIADB))
def listed(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[ListedTables]:
    with decided_pipeline(ListedTables, RULES, FIRST, tmp_path_factory.mktemp("listed"), request) as pipeline:
        yield pipeline


from_postgres = pytest.mark.parametrize("listed", in_every_run(*FROM_POSTGRES), indirect=True)
from_mariadb = pytest.mark.parametrize("listed", in_every_run(*FROM_MARIADB), indirect=True)


def test_new_tables_are_copied_asked_about_or_ignored(listed: ListedTables) -> None:
    for table in ("copied_2", "asked_2", "asked_3", "ignored_2"):
        listed.at_source(table, *MAKE)
    listed.settle()
    assert listed.outcome("copied_2") == SAME and listed.target(listed.name("copied_2")).endswith("_is_copied_2")
    assert {table: listed.row(table).state for table in ("asked_2", "asked_3", "ignored_2")} == dict.fromkeys(
        ("asked_2", "asked_3", "ignored_2"), TableState.NEW
    )
    last = listed.run()
    replicator, questions = listed.replicator(), open_questions(listed.replicator())
    asked_2, asked_3 = (questions.pop(listed.name(table)) for table in ("asked_2", "asked_3"))
    assert not questions
    assert set(unanswered(replicator, last.run_id)) == {asked_2, asked_3}
    answer_open_question(replicator, asked_2, Answer.APPLY, "ada", "")
    answer_open_question(replicator, asked_3, Answer.IGNORE, "ada", "")
    listed.settle()
    assert listed.outcome("asked_2") == SAME
    assert listed.row("asked_3").state is TableState.NEW and "ada" in listed.row("asked_3").reason
    assert not listed.has_copy("asked_3") and not listed.has_copy("ignored_2") and not open_questions(replicator)
    with pytest.raises(CommandRefused, match="CMD043"):
        answer_open_question(replicator, asked_2, Answer.IGNORE, "ada", "")


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
    if listed.definition.source.type == "mysql":  # a table that has its name back is copied again
        assert listed.outcome("dropped_2") == STOPPED
        listed.record_command(CommandKind.RESYNC, listed.name("dropped_2"))
        listed.settle()
    assert listed.outcome("dropped_2") == SAME


@from_mariadb
def test_changes_under_another_name_in_mariadb_stop_the_table(listed: ListedTables) -> None:
    listed.at_source("swung", "ALTER TABLE {t} RENAME TO swinging")
    listed.at_source("swinging", "UPDATE {t} SET a = 7 WHERE id = 1", INSERT, "ALTER TABLE {t} RENAME TO swung")
    listed.settle()
    assert listed.outcome("swung") == STOPPED
    listed.record_command(CommandKind.RESYNC, listed.name("swung"))
    listed.settle()
    assert listed.outcome("swung") == SAME


@from_postgres
def test_changes_under_a_name_between_two_runs_are_copied(listed: ListedTables) -> None:
    listed.at_source("swung", "ALTER TABLE {t} RENAME TO swinging")
    listed.at_source("swinging", "UPDATE {t} SET a = 7 WHERE id = 1", INSERT, "ALTER TABLE {t} RENAME TO swung")
    listed.settle()
    assert listed.outcome("swung") == SAME


@from_postgres
@pytest.mark.nightly
def test_a_renamed_table_is_followed_without_another_copy(listed: ListedTables) -> None:
    listed.at_source("followed", "UPDATE {t} SET a = 7 WHERE id = 1", "ALTER TABLE {t} RENAME TO moved")
    listed.at_source("moved", INSERT, "ALTER TABLE {t} ADD w text")
    listed.settle()
    listed.at_source("moved", "UPDATE {t} SET w = 'w'")
    listed.settle()
    assert listed.equals("followed", "moved")
    floor = listed.control(listed.name("followed")).floor
    tables = {"tables": [listed.name("followed")], "key": "again", "arguments": {}}
    request(listed.replicator(), CommandKind.RESYNC, tables)
    listed.settle()
    listed.at_source("moved", "DELETE FROM {t} WHERE id = 2")
    listed.settle()
    assert listed.equals("followed", "moved") and listed.control(listed.name("followed")).floor > floor
    listed.at_source("moved", "ALTER TABLE {t} RENAME TO followed", "UPDATE followed SET a = 1")
    listed.settle()
    assert listed.outcome("followed") == SAME


def test_an_operator_confirms_that_a_table_was_renamed(listed: ListedTables) -> None:
    listed.at_source("confirmed", "ALTER TABLE {t} RENAME TO other")
    listed.at_source("other", INSERT)
    listed.settle()
    question = open_questions(listed.replicator())[listed.name("confirmed")]
    assert question.changes == (f"the table was renamed to {listed.name('other')}",)
    answer_open_question(listed.replicator(), question, Answer.APPLY, "ada", "")
    listed.at_source("other", "UPDATE {t} SET a = 3 WHERE id = 3")
    listed.settle()
    assert listed.equals("confirmed", "other")
