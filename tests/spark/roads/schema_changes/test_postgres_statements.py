"""Every statement that PostgreSQL allows on a table with rows: the copy is equal, or stopped with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from _pytest.mark import ParameterSet
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.commands import CommandKind
from airflow_cdc_provider.core.connections import ConnectionInfo, Secrets
from airflow_cdc_provider.core.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.index import TableRow
from airflow_cdc_provider.core.states import TableState
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.delta_tables import read
from tests.faults.worker import request as ask
from tests.spark.roads.scene import Scene
from tests.spark.roads.schema_changes.postgres_statements import CASES, SAME, SAME_OR_STOPPED, STOPPED, Case

pytestmark = [pytest.mark.jvm, pytest.mark.server]

DATABASE = "statements"
RUN = "{run}"
Texts = tuple[str | None, ...]


@dataclass
class Statements(Scene):
    """One replicator whose tables live through one case each."""

    server: EmbeddedPostgres
    found: dict[str, str] = field(default_factory=dict)

    @property
    def secrets(self) -> Secrets:
        server = self.server
        return Secrets(ConnectionInfo("db", server.host, server.port, server.user, server.password, schema=DATABASE))

    def until_quiet(self) -> None:
        """Runs until there is nothing to do but to tell which tables are stopped."""
        for _ in range(9):
            if set(self.run().states) <= {"open_window", "close_window"}:
                return
        raise AssertionError("there is no end of it")

    def rows(self) -> dict[str, TableRow]:
        return self.replicator().state.tables(self.definition.name)

    def outcome(self, table: str) -> str:
        """``same``, or why not."""
        row = self.rows()[f"public.{table}"]
        if row.state is TableState.BLOCKED:
            return STOPPED if row.reason and row.remedy else f"blocked without a reason: {row}"
        names, truth = self.truth(table)
        copy = Counter(tuple(plain(row.get(name)) for name in names) for row in self.copy(table))
        if copy == truth:
            return SAME
        return f"only at the source: {list(truth - copy)[:2]}, only in the copy: {list(copy - truth)[:2]} of {names}"

    def truth(self, table: str) -> tuple[list[str], Counter[Texts]]:
        """As PostgreSQL prints the values, without columns that are never copied."""
        with psycopg.connect(self.server.dsn(DATABASE)) as connection:
            connection.execute("SET intervalstyle TO iso_8601; SET timezone TO 'UTC'; SET search_path TO ''")
            generated = {
                name
                for (name,) in connection.execute(
                    "SELECT attname::text FROM pg_attribute WHERE attrelid = %s::regclass AND attgenerated <> ''",
                    [f"public.{table}"],
                )
            }
            cursor = connection.execute(f"SELECT * FROM {_only(connection, table)}public.{table}".encode())
            result, named = cursor.pgresult, enumerate(column.name for column in cursor.description or ())
            assert result is not None
            copied = [(at, name) for at, name in named if name not in generated]
            rows = (tuple(text(result.get_value(row, at)) for at, _ in copied) for row in range(result.ntuples))
            return [name for _, name in copied], Counter(rows)

    def copy(self, table: str) -> list[dict[str, Any]]:
        place = self.replicator().target.locate(self.target(f"public.{table}"))
        rows: list[dict[str, Any]] = read(DeltaTable(place)).to_pylist()
        return rows


def _only(connection: psycopg.Connection[Any], table: str) -> str:
    query = "SELECT relkind = 'p' FROM pg_class WHERE oid = %s::regclass"
    row = connection.execute(query, [f"public.{table}"]).fetchone()
    return "" if row == (True,) else "ONLY "


def text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def plain(value: Any) -> str | None:
    return None if value is None else str(value)


def name_of(case: Case, busy: bool) -> str:
    return f"t{CASES.index(case)}_{'busy' if busy else 'quiet'}"


TABLES = [(case, busy) for case in CASES for busy in (False, True)]
IN_EVERY_RUN = {
    ("two columns swap their names", True),
    ("rename, and a new column under the old name", False),
    ("drop", True),
    ("drop and add again with a default", False),
    ("add with a constant", False),
    ("add with a value per row", True),
    ("same type, other values", False),
    ("same type, same values", True),
    ("inet to text", False),
    ("varchar longer", True),
    ("rename of an enum label", False),
    ("a composite type gets an attribute", False),
    ("another primary key", True),
    ("vacuum full", True),
    ("truncate and vacuum full", False),
    ("truncate, rows, other values", False),
    ("another table of the same name", False),
    ("a new partition with rows", False),
    ("a table with rows is attached", False),
    ("a partition is detached", True),
    ("a partition leaves and returns", True),
}


def chosen(request: pytest.FixtureRequest) -> list[tuple[Case, bool]]:
    """Tables of the cases that this session runs."""
    told = (getattr(item, "callspec", None) for item in request.session.items if item.path == request.path)
    return [(spec.params["case"], spec.params["busy"]) for spec in told if spec]


@pytest.fixture(scope="module")
def story(
    postgres: EmbeddedPostgres,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Statements]:
    """The copies, the statements, two runs; then rows, and a run."""
    folder = tmp_path_factory.mktemp("statements")
    tables = chosen(request)
    with psycopg.connect(postgres.dsn(), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {DATABASE}")
        with psycopg.connect(postgres.dsn(DATABASE), autocommit=True) as connection:
            for case, busy in tables:
                execute(connection, name_of(case, busy), case.make)
            listed = ", ".join(name_of(case, busy) for case, busy in tables)
            connection.execute(
                f"CREATE PUBLICATION cdc FOR TABLE {listed} WITH (publish_via_partition_root = true)".encode()
            )
            definition = Definition(
                name="statements",
                source=Source("postgres", "source", options={"publication": "cdc"}),
                target=Target("delta", f"{folder}/lake"),
                tables=tuple(TableRule(f"public.{name_of(case, busy)}") for case, busy in tables),
                staging=Staging(f"{folder}/staging"),
            )
            scene = Statements(folder, spark, definition, postgres)
            scene.green()
            for part in (0, 1):
                for case, busy in tables:
                    execute(connection, name_of(case, busy), phase(case, busy, part))
                scene.until_quiet()
            scene.found = {name_of(case, busy): scene.outcome(name_of(case, busy)) for case, busy in tables}
            yield scene
        server.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s", [DATABASE]
        )
        server.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


def phase(case: Case, busy: bool, part: int) -> tuple[str, ...]:
    """The statements before, or behind, the run in their midst."""
    cut = case.statements.index(RUN) if RUN in case.statements else len(case.statements)
    statements = (case.statements[:cut], case.statements[cut + 1 :])[part]
    before, after = (case.rows[1:], case.rows[:1]) if busy else ((), ())
    return (*before, *statements) if part == 0 else (*statements, *after)


def execute(connection: psycopg.Connection[Any], table: str, statements: tuple[str, ...]) -> None:
    for statement in statements:
        for one in statement.split(";"):
            connection.execute(one.replace("{t}", table).encode())


def parameters() -> list[ParameterSet]:
    return [
        pytest.param(
            case,
            busy,
            id=f"{case.name}-{'busy' if busy else 'quiet'}",
            marks=() if (case.name, busy) in IN_EVERY_RUN else pytest.mark.nightly,
        )
        for case, busy in TABLES
    ]


@pytest.mark.parametrize(("case", "busy"), parameters())
def test_the_copy_is_the_source_or_is_stopped_with_the_reason(story: Statements, case: Case, busy: bool) -> None:
    found, expected = story.found[name_of(case, busy)], case.expected(busy)
    said = story.rows()[f"public.{name_of(case, busy)}"].reason
    assert found == expected or (expected == SAME_OR_STOPPED and found in (SAME, STOPPED)), said


def test_what_was_stopped_is_the_source_again_after_a_resync(story: Statements) -> None:
    blocked = [table for table, row in story.rows().items() if row.state is TableState.BLOCKED]
    more = {"tables": blocked, "key": "again", "arguments": {"approve_deletes": True}}
    ask(story.replicator(), CommandKind.RESYNC, more)
    story.until_quiet()
    found = {table: story.outcome(table.removeprefix("public.")) for table in blocked}
    assert set(found.values()) == {SAME}, {table: what for table, what in found.items() if what != SAME}
