"""Comments of columns follow those of the source, without another copy and without Spark."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.control import open_window
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.targets.database import target as database_target
from tests.spark.contract.once import once_at
from tests.spark.databases import new_schema
from tests.spark.pipelines.schema_changes.commented import SCHEMA, TABLE, Commented, commented

pytestmark = [pytest.mark.jvm, pytest.mark.server]

ODD = "it's \"v\" \\ `é` 100 %s -- ; \\'\n\\n {0}"
IN_EVERY_RUN = {("postgres", "delta"), ("postgres", "mysql"), ("mysql", "iceberg"), ("mysql", "postgres")}
SERVERS = {"postgres": "postgres", "mysql": "mariadb"}
WITHOUT_SPARK = {"open_window", "close_window"}


class Killed(BaseException):
    pass


def die() -> None:
    raise Killed


@pytest.fixture(
    params=[
        pytest.param((source, target), id=f"{source} to {target}", marks=() if chosen else pytest.mark.nightly)
        for source in SERVERS
        for target in ("postgres", "mysql", "iceberg", "delta")
        for chosen in [(source, target) in IN_EVERY_RUN]
    ]
)
def pipeline(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[Commented]:
    """With comments, and copied."""
    source, target = request.param
    with contextlib.ExitStack() as stack:
        database = None
        if target in SERVERS:
            server = request.getfixturevalue(SERVERS[target])
            database = stack.enter_context(new_schema(target, server, "copies"))
        tables = stack.enter_context(new_schema(source, request.getfixturevalue(SERVERS[source]), SCHEMA))
        made = stack.enter_context(commented(tmp_path, spark, tables, target, database))
        for column, text in {"id": "the key", "v": ODD, "mail": "of a person", "note": "not copied"}.items():
            made.comment(column, text)
        made.run_successfully()
        yield made


@pytest.mark.nightly
def test_comments_follow_the_source_without_another_copy(pipeline: Commented) -> None:
    assert pipeline.copied() == {"id": "the key", "v": ODD, "mail": "of a person"}
    pipeline.run_until_idle()
    before = pipeline.control(TABLE)
    assert set(pipeline.run_successfully().states) <= WITHOUT_SPARK
    assert pipeline.control(TABLE) == before
    pipeline.comment("v", "another text")
    pipeline.comment("n", "a number")
    pipeline.comment("id", "")
    pipeline.run_until_idle()
    expected = {"v": "another text", "mail": "of a person", "n": "a number"}
    assert pipeline.copied() == expected
    after = pipeline.control(TABLE)
    assert (after.floor, after.schema, after.identity and after.identity.table) == (
        before.floor,
        before.schema,
        before.identity and before.identity.table,
    )
    assert pipeline.rows() == 2
    pipeline.source.execute(f"INSERT INTO {TABLE} (id, v) VALUES (3, 'c')", f"UPDATE {TABLE} SET v = 'B' WHERE id = 2")
    pipeline.run_until_idle()
    pipeline.record_command(CommandKind.VERIFY)
    pipeline.run_successfully()
    assert pipeline.rows() == 3 and pipeline.copied() == expected
    assert pipeline.control(TABLE).state.name is TableState.REPLICATING


def test_comments_survive_changes_of_the_columns_and_another_copy(pipeline: Commented) -> None:
    pipeline.comment("n", "a number")
    pipeline.run_until_idle()
    if pipeline.definition.target.type != "delta":
        pipeline.widen()
        pipeline.run_until_idle()
    pipeline.source.execute(f"ALTER TABLE {TABLE} ADD z int", f"INSERT INTO {TABLE} (id, z) VALUES (3, 4)")
    pipeline.run_until_idle()
    expected = {"id": "the key", "v": ODD, "mail": "of a person", "n": "a number"}
    assert pipeline.copied() == expected
    pipeline.comment("id", "")
    pipeline.record_command(CommandKind.RESYNC, TABLE, approve_deletes=True)
    pipeline.run_until_idle()
    del expected["id"]
    assert pipeline.copied() == expected and pipeline.rows() == 3


def test_a_run_killed_while_it_writes_comments_is_repeated(
    pipeline: Commented, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the commit, where a database may have altered the table already, and after it."""
    pipeline.run_until_idle()
    for module, point in ((database_target, "commit.before"), (open_window, "plan.before")):
        text, dag_run = f"at {point}", pipeline.dag_run()
        pipeline.comment("v", text)
        if pipeline.database or module is open_window:
            with monkeypatch.context() as patched:
                patched.setattr(module, "failpoint", once_at(point, die))
                with pytest.raises(Killed):
                    pipeline.execute(dag_run)
            committed = pipeline.control(TABLE).comments["v"] == text
            assert committed is (module is open_window)
            altered = pipeline.copied()["v"] == text
            assert altered is (committed or pipeline.definition.target.type == "mysql")
        assert pipeline.execute(dag_run).green
        assert pipeline.copied() == {"id": "the key", "v": text, "mail": "of a person"}
    pipeline.run_until_idle()
    fence = pipeline.control(TABLE).fence
    pipeline.run_successfully()
    assert pipeline.control(TABLE).fence == fence


@pytest.mark.parametrize("pipeline", [("postgres", "mysql")], indirect=True)
def test_a_comment_that_the_target_refuses_stops_nothing(pipeline: Commented) -> None:
    """An operator has given a column of the copy another type."""
    assert pipeline.database
    pipeline.run_until_idle()
    pipeline.database.execute("ALTER TABLE copies.commented_t MODIFY v varchar(30) COMMENT 'of an operator'")
    pipeline.comment("v", "refused")
    pipeline.source.execute(f"INSERT INTO {TABLE} (id, v) VALUES (3, 'c')")
    pipeline.run_successfully()
    pipeline.run_until_idle()
    assert pipeline.copied()["v"] == "of an operator" and pipeline.rows() == 3
    assert pipeline.control(TABLE).state.name is TableState.REPLICATING
