"""Documents of histories and of tables without a key, where a target writes them in a form of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.targets.bigquery.options import Json as BigQueryJson
from airflow_cdc_provider.targets.bigquery.sql import BigQuerySql
from airflow_cdc_provider.targets.database.limits import Limits, limit_problems
from airflow_cdc_provider.targets.database.sql import Sql
from airflow_cdc_provider.targets.postgres.sql import PostgresSql
from airflow_cdc_provider.targets.redshift.options import Json as RedshiftJson
from airflow_cdc_provider.targets.redshift.sql import RedshiftSql
from airflow_cdc_provider.targets.snowflake.options import Json as SnowflakeJson
from airflow_cdc_provider.targets.snowflake.sql import SnowflakeSql
from airflow_cdc_provider.targets.spanner.check import table_problems as spanner_problems
from airflow_cdc_provider.targets.spanner.options import Json as SpannerJson

ID, DOCUMENT = Column("id", LogicalType(Kind.INT32), nullable=False), Column("d", LogicalType(Kind.JSON))
KEYLESS = TableSchema("public.t", (ID, DOCUMENT), ())
OWN_FORM = [
    BigQuerySql("p", "d", json=BigQueryJson.JSON),
    SnowflakeSql("DB", "S", json=SnowflakeJson.VARIANT),
    RedshiftSql("s", json=RedshiftJson.SUPER),
]
AS_TEXT = [BigQuerySql("p", "d"), SnowflakeSql("DB", "S"), RedshiftSql("s"), PostgresSql("s")]


def codes(sql: Sql, schema: TableSchema = KEYLESS, history: History = History.NONE) -> list[str]:
    rule = TableRule("public.t", history=history)
    task = TableTask("public.t", "t", schema, rule, "", TableState.REPLICATING)
    return [one.code for one in limit_problems(Limits(255), sql, task)]


@pytest.mark.parametrize("sql", OWN_FORM, ids=lambda sql: type(sql).__name__)
def test_rows_without_a_key_are_not_found_by_documents_in_another_form(sql: Sql) -> None:
    assert codes(sql) == ["TGT099"]
    assert codes(sql, replace(KEYLESS, key=("id",))) == []
    assert codes(sql, replace(KEYLESS, columns=(ID,))) == []


@pytest.mark.parametrize("history", [History.SCD2, History.LOG])
@pytest.mark.parametrize("sql", OWN_FORM, ids=lambda sql: type(sql).__name__)
def test_a_history_has_no_documents_in_another_form(sql: Sql, history: History) -> None:
    """A copy that continues it compares the newest version or change of each key with the row of the source."""
    assert codes(sql, replace(KEYLESS, key=("id",)), history) == ["TGT099"]
    assert codes(sql, history=history) == ["TGT099"]
    assert codes(sql, replace(KEYLESS, key=("id", "d")), history) == [], "in a key documents are texts"


@pytest.mark.parametrize("sql", AS_TEXT, ids=lambda sql: type(sql).__name__)
def test_rows_without_a_key_are_found_by_the_texts_of_documents(sql: Sql) -> None:
    assert codes(sql) == []
    assert codes(sql, replace(KEYLESS, key=("id",)), History.SCD2) == []


@pytest.mark.parametrize("history", [History.SCD2, History.LOG])
@pytest.mark.parametrize("json", SpannerJson)
def test_a_history_in_spanner_has_documents_as_texts(json: SpannerJson, history: History) -> None:
    rule = TableRule("public.t", history=history)
    task = TableTask("public.t", "t", replace(KEYLESS, key=("id",)), rule, "", TableState.REPLICATING)
    found = [problem.code for problem in spanner_problems(task, json)]
    assert found == ([] if json is SpannerJson.TEXT else ["TGT099"])
