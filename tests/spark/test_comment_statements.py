"""Comments of columns by the statements for databases, as the servers have them then."""

from __future__ import annotations

import pymysql
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType
from airflow_cdc_provider.targets.mysql.sql import COMMENT_CHARACTERS, MysqlSql
from airflow_cdc_provider.targets.postgres.sql import PostgresSql
from tests.spark.databases import Database
from tests.spark.pipelines.schema_changes.commented import comments_in

pytestmark = pytest.mark.server

ID, V = Column("id", LogicalType(Kind.INT32), nullable=False), Column("v", LogicalType(Kind.TEXT))
ODD = st.text(st.sampled_from("'\"\\%s{}`-;#/*\n\0né\u20ac\U0001f600"))


def comment(warehouse: Database, column: Column, in_key: bool, text: str) -> None:
    sql = PostgresSql(warehouse.schema) if warehouse.kind == "postgres" else MysqlSql(warehouse.schema)
    warehouse.execute(sql.comment_on(sql.table("t"), column, in_key, text))


@pytest.fixture
def commented(warehouse: Database) -> Database:
    sql = PostgresSql(warehouse.schema) if warehouse.kind == "postgres" else MysqlSql(warehouse.schema)
    columns = [f"id {sql.column_type(ID, True)} NOT NULL PRIMARY KEY", f"v {sql.column_type(V, False)}"]
    warehouse.execute(*sql.create_table("t", columns, "", staging=False))
    return warehouse


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text() | ODD)
@example("\\")
@example("é" * (COMMENT_CHARACTERS + 1))
@example("\U0001f600" * COMMENT_CHARACTERS)
def test_a_comment_is_the_same_on_the_server(commented: Database, text: str) -> None:
    for column in (ID, V):
        comment(commented, column, column is ID, text)
    expected = text.replace("\0", "")
    if commented.kind == "mysql":
        expected = "".join("\ufffd" if one > "\uffff" else one for one in text[:COMMENT_CHARACTERS])
    assert comments_in(commented, "t") == ({"id": expected, "v": expected} if expected else {})


def test_a_column_with_another_type_than_that_of_the_copy_stays_as_it_is(commented: Database) -> None:
    """An operator may have given it that type. PostgreSQL changes comments alone."""
    if commented.kind == "postgres":
        commented.execute(f"ALTER TABLE {commented.schema}.t ALTER v TYPE varchar(9)")
        comment(commented, V, False, "text")
        assert comments_in(commented, "t") == {"v": "text"}
        return
    commented.execute(f"ALTER TABLE {commented.schema}.t MODIFY v varchar(9)")
    with pytest.raises(pymysql.Error, match="INSTANT"):
        comment(commented, V, False, "text")
    assert comments_in(commented, "t") == {}
