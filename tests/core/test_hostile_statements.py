"""A name or a value changes no other part of a statement, in any dialect."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.alterations import Alter, Alteration
from airflow_cdc_provider.core.table.merge_plan import MergePlan
from airflow_cdc_provider.core.table.own_rows import OwnRows
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.targets.bigquery.sql import BigQuerySql
from airflow_cdc_provider.targets.bigquery.sql import text_literal as bigquery_literal
from airflow_cdc_provider.targets.database.merge_sql import merge_statements
from airflow_cdc_provider.targets.database.sql import Sql, add_columns, column_list
from airflow_cdc_provider.targets.iceberg import alterations as iceberg
from airflow_cdc_provider.targets.mysql.sql import MysqlSql
from airflow_cdc_provider.targets.mysql.sql import text_literal as mysql_literal
from airflow_cdc_provider.targets.postgres.sql import PostgresSql
from airflow_cdc_provider.targets.redshift.sql import RedshiftSql
from airflow_cdc_provider.targets.redshift.sql import text_literal as redshift_literal
from airflow_cdc_provider.targets.snowflake.sql import SnowflakeSql
from airflow_cdc_provider.targets.sparksql.merge_sql import merge_sql
from airflow_cdc_provider.targets.sparksql.names import quoted, text_literal
from tests.hostile_texts import TEXTS, ZERO

TEXT = LogicalType(Kind.TEXT)
NAME, VALUE = "zz plain", "zz value"
"""Stand for a name and a value. No statement has them by itself."""

Render = Callable[[str, str], Iterator[str]]
Literal = Callable[[str], str]


@dataclass(frozen=True)
class Dialect:
    """``render``: statements with a name and a value."""

    render: Render
    quoted: Callable[[str], str]
    literal: Literal


def plans(name: str, value: str) -> Iterator[MergePlan]:
    """A key, another column and an added one with this name, with and without a key, in a shared table or not."""
    shard = Column("shard", TEXT, nullable=False)
    key, nullable = Column(name, TEXT, nullable=False), Column(name, TEXT)
    added = Column(name, TEXT, initial=json.dumps(value))
    other = Column("other", TEXT, nullable=False)
    own = OwnRows(shard, value)
    for on_delete, truncated in ((OnDelete.HARD, True), (OnDelete.SOFT, False)):
        make = {"on_delete": on_delete, "partial": not truncated, "truncated": truncated}
        yield MergePlan(TableSchema("t", (shard, key, other), ("shard", name)), own=own, **make)  # type: ignore[arg-type]
        yield MergePlan(TableSchema("t", (key, other), (name,)), **make)  # type: ignore[arg-type]
        yield MergePlan(TableSchema("t", (nullable, other), (name,)), **make)  # type: ignore[arg-type]
        yield MergePlan(TableSchema("t", (other, added), ("other",)), added=(added,), **make)  # type: ignore[arg-type]
    yield MergePlan(TableSchema("t", (nullable, other)), OnDelete.HARD)


def of_database(sql: Sql) -> Render:
    def render(name: str, value: str) -> Iterator[str]:
        for plan in plans(name, value):
            yield from (one.text for one in merge_statements(sql, sql.table("t"), sql.table("s"), plan))
            yield from column_list(sql, plan.schema, soft=True)
            yield from add_columns(sql, "t", plan.added)
            yield from sql.create_table("t", column_list(sql, plan.schema, soft=False), value, staging=False)

    return render


def of_spark(name: str, value: str) -> Iterator[str]:
    for plan in plans(name, value):
        yield merge_sql("lake.t", "staged", plan)
    comment = Alteration(Alter.COMMENT, Column(name, TEXT), comment=value)
    rename = Alteration(Alter.RENAME, Column("other", TEXT), Column(name, TEXT))
    yield from iceberg.statements("lake.t", [comment, rename]) or ()


def postgres_literal(text: str) -> str:
    mark = "E" if "\\" in text else ""
    return mark + "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


MYSQL, REDSHIFT = MysqlSql("shop"), RedshiftSql("shop")
POSTGRES, SNOWFLAKE, BIGQUERY = PostgresSql("shop"), SnowflakeSql("d", "shop"), BigQuerySql("p", "shop")
DIALECTS = {
    "bigquery": Dialect(of_database(BIGQUERY), BIGQUERY.quoted, bigquery_literal),
    "mysql": Dialect(of_database(MYSQL), MYSQL.quoted, mysql_literal),
    "postgres": Dialect(of_database(POSTGRES), POSTGRES.quoted, postgres_literal),
    "redshift": Dialect(of_database(REDSHIFT), REDSHIFT.quoted, redshift_literal),
    "snowflake": Dialect(of_database(SNOWFLAKE), SNOWFLAKE.quoted, mysql_literal),
    "spark": Dialect(of_spark, quoted, text_literal),
}


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_a_name_and_a_value_are_quoted_and_change_nothing_else(dialect: Dialect) -> None:
    templates = list(dialect.render(NAME, VALUE))
    assert any(dialect.quoted(NAME) in one for one in templates) and any(VALUE in one for one in templates)
    for text in (*TEXTS, *ZERO):
        wanted = [
            one.replace(dialect.quoted(NAME), dialect.quoted(text))
            .replace(dialect.literal(NAME), dialect.literal(text))
            .replace(dialect.literal(VALUE), dialect.literal(text))
            for one in templates
        ]
        assert list(dialect.render(text, text)) == wanted, text
