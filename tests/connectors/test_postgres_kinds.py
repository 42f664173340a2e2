"""Tables and columns that PostgreSQL does not send, or that the role may not select, are refused with a reason."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from airflow_cdc_provider.connectors.sources.postgres.source import PostgresSource
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import Columns
from airflow_cdc_provider.core.spec.other_kinds import OtherKind
from tests.connectors.conftest import Database


@pytest.fixture
def role(database: Database) -> Iterator[tuple[str, str]]:
    name, password = f"reader_{database.name}", secrets.token_urlsafe(12)
    database.sql(f"CREATE ROLE {name} LOGIN REPLICATION PASSWORD '{password}'")
    own = database.source
    yield name, password
    database.source = own
    database.sql(f"DROP OWNED BY {name}", f"DROP ROLE {name}")


def refusal(database: Database, task: TableTask) -> Problem:
    """The same for a run and for ``check``."""
    (problem,) = database.source.refused([task]).values()
    assert problem in database.source.check([task])
    return problem


def test_tables_whose_changes_are_not_in_the_wal_are_listed_and_refused(database: Database) -> None:
    database.sql(
        "CREATE TABLE good (id int PRIMARY KEY)",
        "CREATE UNLOGGED TABLE fleeting (id int PRIMARY KEY)",
        "CREATE FOREIGN DATA WRAPPER nothing",
        "CREATE SERVER files FOREIGN DATA WRAPPER nothing",
        "CREATE FOREIGN TABLE far (id int) SERVER files",
        "CREATE TABLE part (id int) PARTITION BY RANGE (id)",
        "CREATE FOREIGN TABLE part_far PARTITION OF part FOR VALUES FROM (0) TO (9) SERVER files",
        "CREATE TABLE mixed (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE mixed_1 PARTITION OF mixed FOR VALUES FROM (0) TO (9)",
        'CREATE UNLOGGED TABLE "mixed 2" PARTITION OF mixed FOR VALUES FROM (9) TO (19)',
    )
    database.publish("good", "mixed")
    tasks = [database.task(f"public.{name}") for name in ("good", "fleeting", "far", "part", "mixed")]
    refused = database.source.refused(tasks)
    assert {name: (one.code, one.found) for name, one in refused.items()} == {
        "public.fleeting": ("SRC017", "an unlogged table"),
        "public.far": ("SRC017", "foreign table"),
        "public.part": ("SRC017", "foreign partitions public.part_far"),
        "public.mixed": ("SRC017", 'unlogged partitions public."mixed 2"'),
    }
    assert set(refused.values()) <= set(database.source.check(tasks))
    database.sql(refused["public.mixed"].do)
    assert database.source.refused(tasks[-1:]) == {}


def test_views_sequences_and_partitions_are_no_tables_and_are_named(database: Database) -> None:
    database.sql(
        "CREATE TABLE part (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (9)",
        "CREATE TABLE parent (id serial PRIMARY KEY)",
        "CREATE TABLE child (CONSTRAINT k PRIMARY KEY (id)) INHERITS (parent)",
        "CREATE VIEW v AS SELECT * FROM parent",
        "CREATE MATERIALIZED VIEW m AS SELECT * FROM parent",
        "CREATE SEQUENCE s",
        "CREATE TEMPORARY TABLE fleeting (id int PRIMARY KEY)",
    )
    assert database.source.other_kinds() == {
        "public.part_1": OtherKind("a partition", "public.part"),
        "public.v": OtherKind("a view"),
        "public.m": OtherKind("a materialized view"),
        "public.s": OtherKind("a sequence"),
    }
    assert {one.table for one in database.source.tables()} == {"public.part", "public.parent", "public.child"}


def test_a_generated_column_as_the_key_is_refused_unless_rows_are_identified_otherwise(database: Database) -> None:
    generated = "id text GENERATED ALWAYS AS (doc->>'id') STORED PRIMARY KEY"
    database.sql(
        f"CREATE TABLE k (doc jsonb, n int NOT NULL, {generated})",
        f"CREATE TABLE other (doc jsonb, n int NOT NULL UNIQUE, {generated})",
        "ALTER TABLE other REPLICA IDENTITY USING INDEX other_n_key",
    )
    database.publish("k", "other")
    task = database.task("public.k")
    problem = refusal(database, task)
    assert (problem.code, problem.found, task.schema.key) == ("SRC153", "key (id)", ())
    assert [one.code for one in database.source.check([task])] == ["SRC153"]
    keyed = database.task("public.k", key=["n"])
    assert database.source.refused([keyed])["public.k"].code == "SRC170", "two rows may have one n"
    database.sql("CREATE UNIQUE INDEX ON k (n)")
    assert database.source.refused([keyed]) == {}
    assert database.task("public.other").schema.key == ("n",)
    assert database.source.check([database.task("public.other")]) == []
    database.sql("ALTER TABLE k REPLICA IDENTITY FULL")
    assert database.source.check([task]) == []


UNPROVEN = "ALTER TABLE t ADD CONSTRAINT filled NOT NULL n NOT VALID"


@pytest.mark.since(18)
def test_a_not_null_that_was_never_validated_proves_no_key(database: Database) -> None:
    database.sql("CREATE TABLE t (id int PRIMARY KEY, n int UNIQUE)", "INSERT INTO t VALUES (1), (2)", UNPROVEN)
    database.publish("t")
    task = database.task("public.t", key=["n"])
    assert task.schema.column("n").nullable
    problem = database.source.refused([task])["public.t"]
    assert problem.code == "SRC170"
    database.sql("UPDATE t SET n = id", "ALTER TABLE t VALIDATE CONSTRAINT filled")
    assert database.source.refused([task]) == {}
    assert not database.task("public.t").schema.column("n").nullable


@pytest.mark.since(18)
def test_an_identity_of_columns_that_may_be_null_is_no_key(database: Database) -> None:
    database.sql(
        "CREATE TABLE t (id int, n int UNIQUE)", UNPROVEN, "ALTER TABLE t REPLICA IDENTITY USING INDEX t_n_key"
    )
    assert database.task("public.t").schema.key == ()
    database.sql("ALTER TABLE t VALIDATE CONSTRAINT filled")
    assert database.task("public.t").schema.key == ("n",)


def limited(database: Database, role: tuple[str, str]) -> PostgresSource:
    name, _ = role
    database.sql(
        "CREATE TABLE t (id int PRIMARY KEY, t text, secret text)",
        "INSERT INTO t SELECT i, 'a', 'hidden-value' FROM generate_series(1, 3) i",
        f"GRANT SELECT (id, t) ON t TO {name}",
    )
    database.publish("t")
    return database.source_as(*role)


def test_a_copy_needs_no_right_on_the_columns_that_it_leaves_out(database: Database, role: tuple[str, str]) -> None:
    source = limited(database, role)
    task = database.task("public.t", columns=Columns(exclude=("secret",)))
    assert source.check([task]) == [] and source.refused([task]) == {}
    database.source = source
    with source.copy(task, 1, {}, 4) as copy:
        assert database.copied(copy) == [{"id": number, "t": "a"} for number in (1, 2, 3)]
    with source.snapshot(task, 1, {}, 4) as snapshot:
        assert snapshot.proofs is None and len(database.copied(snapshot.copy)) == 3


def test_a_column_that_the_role_may_not_select_is_refused(database: Database, role: tuple[str, str]) -> None:
    source = limited(database, role)
    database.source = source
    problem = refusal(database, database.task("public.t"))
    assert (problem.code, problem.found) == ("SRC010", "no SELECT on the columns secret")
    assert problem.do == f'GRANT SELECT ON TABLE "public"."t" TO "{role[0]}";'
    database.sql("ALTER TABLE t ADD late text")
    task = database.task("public.t", columns=Columns(exclude=("secret",)))
    assert refusal(database, task).found == "no SELECT on the columns late"


def test_such_a_column_is_not_read_from_the_stream_either(database: Database, role: tuple[str, str]) -> None:
    """A run refuses the table; a column that was dropped since can be shown by the stream only."""
    database.source = limited(database, role)
    task = database.task("public.t", columns=Columns(exclude=("absent",)))
    lo = database.source.open_stream(["public.t"])
    database.sql("INSERT INTO t VALUES (4, 'b', 'hidden-value')", "ALTER TABLE t DROP secret")
    items = database.read(lo, task)
    assert '{"id":4,"t":"b"}' in repr(items) and "hidden-value" not in repr(items)
