"""JSON documents in the warehouses' own types, through the load of a copy and of a merge."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from spark_jobs import snapshot, verify
from tests.spark.contract.kits import TARGETS
from tests.spark.replicator import Replicator, by_table
from tests.spark.scripted_table import ScriptedTable

pytestmark = [pytest.mark.jvm, pytest.mark.server]

SCHEMA = TableSchema(
    "public.t",
    (
        Column("id", LogicalType(Kind.INT32), nullable=False),
        Column("doc", LogicalType(Kind.JSON)),
        Column("at", LogicalType(Kind.TIMESTAMPTZ)),
    ),
    ("id",),
)
DOCUMENTS = ('{"b": 1, "a": [null, 2.5, "é \\" \\\\ 🎉"]}', "null", '"text"', "[]", None)
AT = "2024-02-29T12:34:56.100000Z"


def row(key: int, document: str | None) -> dict[str, Any]:
    return {"id": key, "doc": document, "at": AT}


@pytest.mark.parametrize(
    ("target", "json_type"),
    [
        ("redshift", "super"),
        pytest.param("bigquery", "json", marks=pytest.mark.nightly),
        pytest.param("snowflake", "variant", marks=pytest.mark.nightly),
        pytest.param("spanner", "json", marks=pytest.mark.nightly),
    ],
)
def test_documents_are_loaded_into_the_type_of_the_warehouse(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest, target: str, json_type: str
) -> None:
    with TARGETS[target](spark, tmp_path, request.getfixturevalue) as kit:
        given = replace(kit.target, options={**kit.target.options, "json": json_type})
        table = ScriptedTable(kit.session, tmp_path, SCHEMA, target=given, secrets=kit.secrets)
        table.copy([row(key, document) for key, document in enumerate(DOCUMENTS)])
        changes = [table.insert(row(10 + key, document)) for key, document in enumerate(DOCUMENTS)]
        table.land([*changes, table.update(row(0, '{"new": true}'))])
        staged, _ = table.staged()
        assert table.merged(staged).outcome is Outcome.DONE
        found = {key: document for key, document, _ in table.rows()}
    wanted = {0: '{"new": true}', **{key: text for key, text in enumerate(DOCUMENTS) if key}}
    wanted |= {10 + key: text for key, text in enumerate(DOCUMENTS)}
    assert {key: parsed(document) for key, document in found.items()} == {
        key: parsed(text) for key, text in wanted.items()
    }


def test_a_comparison_leaves_documents_in_another_form_out_and_says_so(
    spark: SparkSession,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    database: psycopg.Connection[object],
    connection: ConnectionInfo,
) -> None:
    """A document without its white space would be a difference that no repair ends."""
    database.execute("CREATE TABLE documents (id int PRIMARY KEY, doc jsonb, v text)")
    database.execute("""INSERT INTO documents VALUES (1, '{"b": 1, "a": [2.50]}', 'x'), (2, NULL, 'y')""")
    database.execute("CREATE PUBLICATION documents FOR TABLE documents")
    with TARGETS["redshift"](spark, tmp_path, request.getfixturevalue) as kit:
        given = replace(kit.target, options={**kit.target.options, "json": "super"})
        warehouse, stage = kit.secrets.target, kit.secrets.stage
        rules = [TableRule("public.documents")]
        made = Replicator(
            tmp_path / "documents", "documents", connection, rules, target=given, warehouse=warehouse, stage=stage
        )
        lo = dict(made.source.open_stream(["public.documents"]))
        made.run(made.step(StepKind.SNAPSHOT), snapshot.run)
        step = made.step(StepKind.VERIFY, window=made.log.sealed() + 1, lo=lo)
        found = by_table(made.run(step, verify.run))["public.documents"].detail
    assert (found["identical"], found["source_rows"], found["not_compared"]) == (True, 2, ["doc"])
    assert found["columns"] == {"id": True, "v": True}


def parsed(document: Any) -> Any:
    """A NULL and a document ``null`` are different."""
    return ("absent",) if document is None else json.loads(document)
