"""The check of a database before any job starts, and partitions of rows that are loaded once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow
import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.spec.definition import Definition, OnDelete, Source, Staging, TableRule
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.staging.open_store import open_log
from airflow_cdc_provider.targets.database.names import STAGED, staging_table
from airflow_cdc_provider.targets.database.staging import create_staged_table, prepare_staging
from airflow_cdc_provider.targets.database.target import DatabaseTarget
from airflow_cdc_provider.targets.database.text_loads import load_texts
from airflow_cdc_provider.targets.registry import open_targets
from tests.spark.databases import Database

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
    assert problem.code in ("TGT063", "TGT091") and "columns" in problem.do and problem.table == "public.t"
    assert warehouse.tables() == []


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
