"""The check of a database before any job starts, and partitions of rows that are loaded once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import psycopg
import pyarrow
import pymysql
import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.spec.columns import Columns
from airflow_cdc_provider.core.spec.definition import Definition, OnDelete, Source, Staging, TableRule
from airflow_cdc_provider.core.spec.snapshot import Snapshot, SnapshotMode
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.staging.open_store import open_log
from airflow_cdc_provider.targets.database.names import STAGED, staging_table
from airflow_cdc_provider.targets.database.sql import add_columns, column_list, staged_column_list
from airflow_cdc_provider.targets.database.staging import create_staged_table, prepare_staging
from airflow_cdc_provider.targets.database.target import DatabaseTarget
from airflow_cdc_provider.targets.database.text_loads import load_texts
from airflow_cdc_provider.targets.registry import open_targets
from airflow_cdc_provider.targets.target import TargetState
from tests.spark.databases import Database, ignore_case

pytestmark = pytest.mark.server

ID = Column("id", LogicalType(Kind.INT32), nullable=False)
SCHEMA = TableSchema("public.t", (ID, Column("v", LogicalType(Kind.TEXT))))


def opened(warehouse: Database, folder: Path, connection: ConnectionInfo | None = None) -> DatabaseTarget:
    source, staging = Source("postgres", "none"), Staging(str(folder))
    definition = Definition(
        name="r", source=source, target=warehouse.target, tables=(TableRule("public.t"),), staging=staging
    )
    log = open_log(definition, ConnectionInfo())
    target = open_targets(definition, Secrets(target=connection or warehouse.connection), log).only
    assert isinstance(target, DatabaseTarget)
    return target


def task(*names: str, key: Sequence[str] = (), **rule: object) -> TableTask:
    columns = tuple(Column(name, LogicalType(Kind.INT32), nullable=False) for name in names)
    made = TableRule("public.t", **rule)  # type: ignore[arg-type]
    return TableTask("public.t", "t", TableSchema("public.t", columns, tuple(key)), made, "", TableState.PENDING)


def codes(target: DatabaseTarget, *tasks: TableTask) -> list[str]:
    return [problem.code for problem in target.check(tasks)]


def test_a_table_whose_values_would_stay_in_clear_is_not_taken_over(warehouse: Database, tmp_path: Path) -> None:
    warehouse.execute(f"CREATE TABLE {warehouse.schema}.t (id int, v int)")
    never = {"key": ["id"], "snapshot": Snapshot(SnapshotMode.NEVER)}
    target = opened(warehouse, tmp_path)
    assert codes(target, task("id", "v", **never)) == []  # type: ignore[arg-type]
    assert codes(target, task("id", "v", **never, columns=Columns(hash=("v",)))) == ["CPY023"]  # type: ignore[arg-type]


def test_a_writable_database_has_no_problem_and_keeps_nothing_of_the_check(warehouse: Database, tmp_path: Path) -> None:
    assert codes(opened(warehouse, tmp_path), task("id", key=["id"])) == []
    assert warehouse.tables() == []


def test_all_problems_are_reported_at_once(warehouse: Database, tmp_path: Path) -> None:
    target = opened(warehouse, tmp_path)
    tasks = (
        task("a", "A", key=["a"]),
        task("_cdc_order", key=["_cdc_order"]),
        task("a", on_delete=OnDelete.SOFT),
        task("x" * 65, key=["x" * 65]),
        task("a", key=["a"], cluster_by=("a",)),
    )
    assert codes(target, *tasks) == ["TGT014", "TGT015", "TGT016", "TGT054", "TGT055"]


def test_a_wrong_password_a_missing_schema_and_an_unreachable_server_have_messages_of_their_own(
    warehouse: Database, tmp_path: Path
) -> None:
    wrong = opened(warehouse, tmp_path, replace(warehouse.connection, password="wrong-one"))
    (found,) = wrong.check(())
    assert found.code == "TGT061" and "wrong-one" not in str(found)
    assert codes(opened(warehouse, tmp_path, replace(warehouse.connection, port=1))) == ["TGT060"]
    nowhere = opened(replace(warehouse, schema="nowhere"), tmp_path)
    assert codes(nowhere) == (["TGT052"] if warehouse.kind == "postgres" else ["TGT061"])


def test_more_columns_than_the_database_can_hold_are_found_before_a_job_starts(
    warehouse: Database, tmp_path: Path
) -> None:
    target = opened(warehouse, tmp_path)
    fitting, wide = ([f"c{number}" for number in range(count)] for count in (300, 1_650))
    assert target.check([task(*fitting, key=["c0"])]) == []
    (problem,) = target.check([task(*wide, key=["c0"])])
    assert problem.code == "TGT058" and "columns" in problem.do and problem.table == "public.t"
    assert warehouse.tables() == []


def test_columns_that_fit_in_number_but_not_in_bytes_are_found_by_creating_the_staging_table(
    warehouse: Database, tmp_path: Path
) -> None:
    if warehouse.kind == "postgres":
        pytest.skip("its texts are kept outside of the row")
    texts = tuple(Column(f"c{number}", LogicalType(Kind.TEXT)) for number in range(1_000))
    wide = replace(task("id"), schema=TableSchema("public.t", (ID, *texts), ("id",)))
    (problem,) = opened(warehouse, tmp_path).check([wide])
    assert problem.code in ("TGT063", "TGT091") and "columns" in problem.do and problem.table == "public.t"
    assert warehouse.tables() == []


def test_a_run_refuses_what_the_check_finds_about_a_table_and_about_the_server(
    warehouse: Database, tmp_path: Path
) -> None:
    target = opened(warehouse, tmp_path)
    tasks = [
        replace(one, table=f"public.{name}")
        for name, one in {
            "fitting": task("a", key=["a"], cluster_by=("a",)),
            "equal": task("a", "A", key=["a"]),
            "reserved": task("_cdc_order", key=["_cdc_order"]),
            "long": task("x" * 65, key=["x" * 65]),
            "wide": task(*(f"c{number}" for number in range(1_650)), key=["c0"]),
            "key": task(*(f"c{number}" for number in range(33)), key=[f"c{number}" for number in range(33)]),
        }.items()
    ]
    refused = {table: problem.code for table, problem in target.refused(tasks).items()}
    assert refused == {
        "public.equal": "TGT014",
        "public.reserved": "TGT015",
        "public.long": "TGT054",
        "public.wide": "TGT058",
        "public.key": "TGT058",
    }
    if warehouse.kind == "postgres":
        nowhere = opened(replace(warehouse, schema="nowhere"), tmp_path)
        assert {problem.code for problem in nowhere.refused(tasks).values()} == {"TGT052"}


def test_the_names_that_a_server_allows_and_no_others_are_allowed(warehouse: Database, tmp_path: Path) -> None:
    target = opened(warehouse, tmp_path)
    for name in ("a ", " a", "a\tb", "\U0001f600", "é" * 40, "a.b", "`", '"', "%", "é" * 31):
        refused = target.refused([task(name)])
        columns = [f"{target.sql.quoted(name)} {target.sql.integer_type}"]
        try:
            warehouse.execute(*target.sql.create_table("named", columns, "", staging=False))
            kept = warehouse.execute(
                "SELECT column_name FROM information_schema.columns"
                f" WHERE table_schema = '{warehouse.schema}' AND table_name = 'named'"
            ) == [(name,)]
            warehouse.execute(f"DROP TABLE {target.sql.table('named')}")
        except (psycopg.Error, pymysql.Error):
            kept = False
        assert kept is not bool(refused), name


def test_a_key_of_mysql_is_as_long_as_innodb_says(warehouse: Database, tmp_path: Path) -> None:
    if warehouse.kind == "postgres":
        pytest.skip("PostgreSQL limits values, not types")
    target = opened(warehouse, tmp_path)
    texts = [Column(f"t{number}", LogicalType(Kind.TEXT), nullable=False) for number in range(3)]
    cases = (
        [*texts, number("a", Kind.INT64), number("b", Kind.INT32)],
        [*texts, number("a", Kind.INT64), number("b", Kind.INT32), number("c", Kind.BOOLEAN)],
        [*texts, number("a", Kind.DATE), number("b", Kind.TIMESTAMP), number("c", Kind.BOOLEAN)],
        [*texts, number("a", Kind.DATE), number("b", Kind.TIMESTAMP), number("c", Kind.INT16)],
        [*texts, Column("d", LogicalType(Kind.DECIMAL, 27, 1), nullable=False)],
        [*texts, Column("d", LogicalType(Kind.DECIMAL, 28, 1), nullable=False)],
        [*texts, number("u", Kind.UUID)],
        [*texts[:2], number("b", Kind.BYTES), number("a", Kind.INT64), number("c", Kind.INT32)],
        [*texts[:2], number("b", Kind.BYTES), number("a", Kind.INT64), number("c", Kind.INT64)],
    )
    for columns in cases:
        schema = TableSchema("public.t", tuple(columns), tuple(column.name for column in columns))
        refused = target.refused([replace(task("id"), schema=schema)])
        listed = column_list(target.sql, schema, soft=False)
        primary = f"PRIMARY KEY ({', '.join(map(target.sql.quoted, schema.key))})"
        try:
            warehouse.execute(*target.sql.create_table("keyed", [*listed, primary], "", staging=False))
            warehouse.execute(f"DROP TABLE {target.sql.table('keyed')}")
            fits = True
        except pymysql.Error:
            fits = False
        assert [problem.code for problem in refused.values()] == ([] if fits else ["TGT096"]), schema


def number(name: str, kind: Kind) -> Column:
    return Column(name, LogicalType(kind), nullable=False)


def test_a_table_whose_texts_ignore_case_is_unfit(warehouse: Database, tmp_path: Path) -> None:
    target = opened(warehouse, tmp_path)
    key = Column("code", LogicalType(Kind.TEXT), nullable=False)
    schema = TableSchema("public.t", (key, Column("v", LogicalType(Kind.TEXT)), number("n", Kind.UUID)), ("code",))
    sql = target.sql
    warehouse.execute(*sql.create_table("t", column_list(sql, schema, soft=True), "", staging=False))
    warehouse.execute(*sql.create_table("s", staged_column_list(sql, schema), "", staging=True))
    warehouse.execute(*add_columns(sql, "t", [Column("added", LogicalType(Kind.TEXT))]))
    with target.server.session("probe") as connection:
        assert [target.unfit(connection.cursor(), name, TargetState(True)) for name in ("t", "s")] == [None, None]
    ignore_case(warehouse, "t", "code")
    with target.server.session("probe") as connection:
        unfit = target.unfit(connection.cursor(), "t", TargetState(True))
    assert unfit is not None and unfit.copy_helps
    assert unfit.problem.code == "TGT094" and unfit.problem.found.startswith("code ")


def test_a_role_that_may_not_create_tables_is_reported(warehouse: Database, tmp_path: Path) -> None:
    name = f"poor_{warehouse.schema}"[:30]
    if warehouse.kind == "postgres":
        warehouse.execute(
            f"CREATE ROLE {name} LOGIN PASSWORD 'p'", f"GRANT USAGE ON SCHEMA {warehouse.schema} TO {name}"
        )
    else:
        host = warehouse.connection.host
        warehouse.execute(
            f"CREATE USER '{name}'@'{host}' IDENTIFIED BY 'p'",
            f"GRANT SELECT ON {warehouse.schema}.* TO '{name}'@'{host}'",
        )
    poor = replace(warehouse.connection, login=name, password="p")
    assert codes(opened(warehouse, tmp_path, poor)) == ["TGT062"]
    if warehouse.kind == "postgres":
        warehouse.execute(f"DROP OWNED BY {name}", f"DROP ROLE {name}")


def test_a_partition_that_two_tasks_load_counts_once(warehouse: Database, tmp_path: Path) -> None:
    target = opened(warehouse, tmp_path)
    staged = staging_table("t", STAGED, "one")
    prepare_staging(target.server, "t")
    create_staged_table(target.server, staged, SCHEMA)
    rows = pyarrow.RecordBatch.from_pydict({"id": ["1", "1"], "v": ["a", None], "_cdc_op": ["I", "I"]})
    columns = dict.fromkeys(rows.schema.names, False)
    assert [load_texts(target.server, staged, columns, split, [rows]) for split in (0, 0, 1)] == [2, 2, 2]
    assert warehouse.rows(("id", "v"), staged) == [(1, "a"), (1, "a"), (1, None), (1, None)]
